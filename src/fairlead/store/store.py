"""The live truth: what can be done with tasks, one method per act, each one script.

A refusal that a caller must handle is an error of `fairlead.errors`; in a batch it stands in the place of the
answer, so that one bad item does not spoil the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from fairlead import errors
from fairlead.settings import Settings
from fairlead.states import State
from fairlead.store.connection import Answer, Connection, fields, make_client, pack, text
from fairlead.store.keys import Keys
from fairlead.store.limits import Limits
from fairlead.store.observe import Explanation, Stats, read_explanation, read_stats
from fairlead.store.policy import SCHEMA, stored_policy
from fairlead.store.reports import Batch, Claimed, Completed, Failed, Grant, answer_or_error, expect_ok
from fairlead.store.server_check import check
from fairlead.store.specs import spec_of
from fairlead.store.workers import Workers
from fairlead.task import NewTask, Task, check_name, check_task_id

MOST_PER_CALL = 1000


@dataclass(frozen=True, slots=True)
class Submitted:
    task_id: str
    status: State
    repeated: bool = False  # the same id or idempotency key was accepted before


class Store:
    """One namespace on one server. `async with Store.connect(url) as store:`"""

    def __init__(
        self, connection: Connection, settings: Settings, clock: Callable[[], str] = lambda: ""
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.clock = clock  # "" is the server's own time; tests give ms
        self.limits = Limits(self)
        self.workers = Workers(connection, self)

    @classmethod
    def connect(cls, url: str, namespace: str = "default", settings: Settings | None = None) -> Self:
        """Nothing is sent before the first call."""
        return cls(Connection(make_client(url), Keys(namespace)), settings or Settings())

    @property
    def address(self) -> str:
        """Where the server is, without a password."""
        where = self.connection.client.connection_pool.connection_kwargs
        return str(where["path"]) if "path" in where else f"{where.get('host')}:{where.get('port')}"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, govern: bool = True) -> None:
        """Checks the server, writes schema, policy and limits. Safe to repeat; the way back after a loss.

        With `govern=False` this process only joins: what is set in the namespace stands.
        """
        await self.connection.guard(check(self.connection.client))
        policy = pack(stored_policy(self.settings))
        answer = await self.connection.run("configure", SCHEMA, policy, int(govern))
        if text(answer[0]) == "newer":
            raise errors.SchemaTooNew(
                f"Namespace {self.connection.keys.namespace!r} has schema {text(answer[1])}, "
                f"this Fairlead knows {SCHEMA}: upgrade it."
            )
        for name, wanted in self.settings.limits.items() if govern else ():
            await self.limits.set(name, wanted)

    async def close(self) -> None:
        await self.workers.close()
        await self.connection.client.aclose()

    async def run(self, act: str, *arguments: Any) -> Answer:
        return expect_ok(await self.connection.run(act, *arguments, self.clock()))

    async def submit(self, *tasks: NewTask) -> list[Submitted | errors.FairleadError]:
        """Accepts up to 1,000 tasks at once; the answers are in order."""
        if len(tasks) > MOST_PER_CALL:
            raise errors.InvalidInput("tasks", f"{len(tasks)} at once, at most {MOST_PER_CALL} are accepted")
        batch = Batch.of(tasks, lambda task: spec_of(task, self.settings))
        replies = (await self.run("submit", batch.packed))[1] if batch.accepted else []
        return batch.answers(map(_submitted, replies))

    async def submit_one(self, task: NewTask) -> Submitted:
        answer = (await self.submit(task))[0]
        if isinstance(answer, errors.FairleadError):
            raise answer
        return answer

    async def claim(
        self,
        worker: str,
        want: int = 1,
        *,
        lease_ms: int | None = None,
        idle: bool = False,
        request: str = "",
    ) -> Claimed:
        """Up to `want` tasks that can start now. `idle`: wake me later. Same `request`: same answer."""
        return self._claimed(
            await self.connection.run(*self._claim_call(worker, want, lease_ms, idle, request))
        )

    def _claim_call(
        self, worker: str, want: int, lease_ms: int | None, idle: bool, request: str
    ) -> tuple[Any, ...]:
        check_name("worker_id", worker)
        lease = lease_ms or self.settings.lease_ms
        return ("claim", worker, min(want, MOST_PER_CALL), lease, int(idle), request, self.clock())

    def _claimed(self, answer: Answer) -> Claimed:
        word = text(answer[0])
        if word in ("draining", "again"):
            return Claimed(draining=word == "draining", again=word == "again")
        _, alarm, rows = expect_ok(answer)
        tasks = [Task.from_record(row[0].decode(), fields(row[1:])) for row in rows]
        return Claimed(tasks=tasks, next_alarm=int(alarm) if alarm else None)

    async def report(
        self,
        worker: str,
        completed: Sequence[Completed] = (),
        failed: Sequence[Failed] = (),
        *,
        claim: int = 0,
        request: str = "",
    ) -> tuple[list[State | errors.FairleadError], Claimed]:
        """Results, failures and the next claim in one round trip."""
        batches = {
            "complete": Batch.of(completed, lambda report: report.packed(self.settings)),
            "fail": Batch.of(failed, lambda report: report.packed()),
        }
        calls = [
            (act, worker, batch.packed, self.clock()) for act, batch in batches.items() if batch.accepted
        ]
        if claim:
            calls.append(self._claim_call(worker, claim, None, False, request))
        answers, passed_over = await self.connection.run_together(*calls)
        claimed = self._claimed(answers.pop()) if claim else Claimed()
        if passed_over and claim and not claimed.tasks:  # it ran before the reports that make room for it
            claimed = await self.claim(worker, claim)
        replies = iter([expect_ok(answer)[1] for answer in answers])
        reported: list[State | errors.FairleadError] = []
        for batch in batches.values():
            rows = next(replies) if batch.accepted else []
            reported += batch.answers(map(answer_or_error, rows))
        return reported, claimed

    async def complete(self, worker: str, *reports: Completed) -> list[State | errors.FairleadError]:
        return (await self.report(worker, completed=reports))[0]

    async def fail(self, worker: str, *reports: Failed) -> list[State | errors.FairleadError]:
        return (await self.report(worker, failed=reports))[0]

    async def renew(self, *grants: Grant, lease_ms: int | None = None) -> list[int | errors.FairleadError]:
        """The new ends of the leases; Fenced where one is no longer the caller's."""
        holders = pack([grant.packed() for grant in grants])
        _, rows = await self.run("renew", holders, lease_ms or self.settings.lease_ms)
        return [int(row[1]) if row[0] == b"ok" else errors.Fenced() for row in rows]

    async def release(self, worker: str, *grants: Grant) -> list[State | errors.FairleadError]:
        """Gives tasks back unrun, to the place they had."""
        _, rows = await self.run("release", worker, pack([grant.packed() for grant in grants]), 0)
        return [answer_or_error(row) for row in rows]

    async def cancel(self, task_id: str) -> str | None:
        """Ends the task; the worker that runs it, if one does."""
        answer = await self.run("cancel", check_task_id(task_id))
        return text(answer[1]) or None

    async def replay(self, task_id: str) -> None:
        await self.run("replay", check_task_id(task_id))

    async def expire(self) -> int:
        return int((await self.run("expire"))[1])

    async def promote(self) -> int:
        return int((await self.run("promote"))[1])

    async def get(self, task_id: str) -> Task:
        key = self.connection.keys.key("task", check_task_id(task_id))
        record = await self.connection.guard(self.connection.client.hgetall(key))
        if b"state" not in record:
            raise errors.UnknownTask()
        return _task(task_id, record)

    async def dead_letters(self, count: int = 100) -> list[Task]:
        """Failed and dead-lettered tasks, the latest first; each can be replayed."""
        client, keys = self.connection.client, self.connection.keys
        ids = [
            text(one) for one in await self.connection.guard(client.zrevrange(keys.key("dead"), 0, count - 1))
        ]
        pipeline = client.pipeline(transaction=False)
        for task_id in ids:
            pipeline.hgetall(keys.key("task", task_id))
        records = await self.connection.guard(pipeline.execute()) if ids else []
        return [
            _task(task_id, record) for task_id, record in zip(ids, records, strict=True) if b"state" in record
        ]

    async def pause_type(self, task_type: str, paused: bool = True) -> None:
        check_name("task_type", task_type)
        await self.run("pause", "type", task_type, int(paused))

    async def stats(self) -> Stats:
        return read_stats(await self.run("stats"), self.settings.worker_ttl_ms)

    async def explain(self, task_id: str) -> Explanation:
        return read_explanation(task_id, await self.run("explain", check_task_id(task_id)))

    async def recorded(self, last_event: str) -> int:
        """The recorder has stored all events up to this one; they are dropped from the outbox."""
        return int(expect_ok(await self.connection.run("recorded", last_event))[1])


def _task(task_id: str, record: dict[bytes, bytes]) -> Task:
    return Task.from_record(task_id, {name.decode(): value.decode() for name, value in record.items()})


def _submitted(row: list[Any]) -> Submitted | errors.FairleadError:
    word = text(row[0])
    if word == "conflict":
        return errors.IdempotencyConflict()
    if word == "invalid":
        return errors.InvalidInput(text(row[1]), text(row[3]), text(row[2]))
    return Submitted(text(row[1]), State(text(row[2])), repeated=word == "exists")
