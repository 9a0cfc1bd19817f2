"""The store of a namespace: what can be done with tasks, one method per act, each one script.

A refusal that a caller must handle is an error of `fairlead.errors`; in a batch the error is in the place of
the answer, so that one bad item does not fail the others.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import msgspec

from fairlead import errors, tracing
from fairlead.checks import check_name, check_short, to_json
from fairlead.model.batch import Batch
from fairlead.model.declarations import Origin, declared_limits, declared_types
from fairlead.model.explanation import Explanation
from fairlead.model.forecast import Forecast
from fairlead.model.reports import Claimed, Completed, Failed
from fairlead.model.states import State
from fairlead.model.stats import Stats
from fairlead.model.task import MOST_PER_CALL, Content, NewTask, Submitted
from fairlead.settings import LimitSettings, Settings, TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.store import replies
from fairlead.store.acceptance import Accepted
from fairlead.store.access.api_keys import ApiKeys
from fairlead.store.access.audit import Audit
from fairlead.store.access.browser_sessions import BrowserSessions
from fairlead.store.access.socket_tickets import SocketTickets
from fairlead.store.batches import in_parts
from fairlead.store.claims import claim, claim_all
from fairlead.store.connection import Connection, pack, schema_too_new
from fairlead.store.crons import Crons
from fairlead.store.dead_letters import DeadLetters
from fairlead.store.engine.state import check
from fairlead.store.epochs import Epochs, new_token
from fairlead.store.estimates import Estimates
from fairlead.store.following import Following
from fairlead.store.forecasts import Forecasts
from fairlead.store.handling import Handling
from fairlead.store.jobs import Jobs
from fairlead.store.limits import Limits
from fairlead.store.live import Live
from fairlead.store.metrics import MetricsPart
from fairlead.store.migration import migrate
from fairlead.store.outbox import Outbox
from fairlead.store.overviews import Overviews
from fairlead.store.policy import Policy, stored_policy
from fairlead.store.pressures import Pressures
from fairlead.store.scripts import SCHEMA
from fairlead.store.series import SeriesReader
from fairlead.store.specs import spec_of
from fairlead.store.upkeep import Upkeep
from fairlead.store.workers import Workers, listed

PROMOTING_ACTS = 64  # of one call: the caretaker has other duties
DECLARED_AT_ONCE = 50  # types, limits and pipelines: a few ms of the server
CONFIRMED_AT_ONCE = 500


class Store(Handling):
    """One namespace on one server. `async with Store.connect(url) as store:`"""

    def __init__(
        self, connection: Connection, settings: Settings, clock: Callable[[], str] = lambda: ""
    ) -> None:
        super().__init__(connection, settings, clock)
        self.url = ""  # of the server now
        self.epochs = Epochs(self)
        self.reopen: Callable[[], Awaitable[None]] = _nothing_to_do  # after StoreUnavailable: a way back
        # what is wrong with an embedded server, which only the process that can open it again can see
        self.engine_problems: Callable[[], Mapping[str, str]] = dict
        self.rejoin: Callable[[], Awaitable[object]] = self.epochs.join  # after StoreLost: all there is to do
        self.is_joined = True  # false: it could not be reached when a gateway started, which joins it later
        self.remember: Callable[[], None] = lambda: None  # what it knows, for the next process here
        # of work that the store lacks, what nobody else knows either
        self.known_elsewhere: Callable[[list[Accepted]], Awaitable[list[Accepted]]] = _nobody_else
        self.limits = Limits(self)
        self.workers = Workers(self)
        self.crons = Crons(self)
        self.jobs = Jobs(self)
        self.dead_letters = DeadLetters(self)
        self.estimates = Estimates(self)
        self.forecasts = Forecasts(self, self.limits)
        self.pressures = Pressures(self)
        self.following = Following(self, self.jobs)
        self.live = Live(self)
        self.outbox = Outbox(self)
        self.metrics, self.series = MetricsPart(self), SeriesReader(self)
        self.overviews = Overviews(self, self.stats)
        self.api_keys, self.tickets = ApiKeys(self), SocketTickets(self)
        self.browser_sessions = BrowserSessions(self)
        self.upkeep = Upkeep(self)
        self.audit = Audit(self)
        self.policy = Policy(self, self.audit)

    @classmethod
    def connect(cls, url: str, namespace: str = "default", settings: Settings | None = None) -> Self:
        """Nothing is sent before the first call."""
        settings = settings or Settings()
        store = cls(Connection.to(url, namespace, settings.engine.replicas), settings)
        store.url = url
        return store

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, *, govern: bool = True, declare: bool | None = None) -> None:
        """Checks the server, writes schema and policy, declares types and limits of the settings.

        Safe to repeat. Raises StoreLost when the data is not what this process knows (`membership.py`).

        With `govern=False` an existing policy is kept. `declare`: whether the types and limits of the
        settings are declared; by default if this process governs. One that does neither only joins.
        """
        declare = govern if declare is None else declare
        await check(self.connection)
        await self.epochs.join()
        policy, before = stored_policy(self.settings), await self.policy.stored()
        arguments = "configure", SCHEMA, pack(policy), int(govern), new_token()
        answer = await self.connection.run(*arguments)
        if answer["answer"] == "older":
            await migrate(self.connection, answer["schema"], policy, self.clock)
            answer = await self.connection.run(*arguments)
        if answer["answer"] == "newer":
            raise schema_too_new(self.connection.keys.namespace, answer["schema"])
        if govern or declare:
            await self.policy.report(before, governs=govern)
        if declare:
            await self.connection.forget_old_functions()
            settings = self.settings
            await self.declare("file", settings.declared_tasks, settings.declared_limits, settings.pipelines)

    async def check_open(self) -> None:
        """Without a write. Raises StoreLost, SchemaTooNew, or NamespaceNotOpen if nobody opened it."""
        found = await self.epochs.check()
        if not found.is_open:
            raise errors.NamespaceNotOpen()
        if found.schema > SCHEMA:
            raise schema_too_new(self.connection.keys.namespace, found.schema)

    async def close(self) -> None:
        await self.live.close()
        await self.connection.close()

    async def declare(
        self,
        origin: Origin,
        types: Mapping[str, TaskSettings],
        limits: Mapping[str, LimitSettings],
        pipelines: Mapping[str, Stages] | None = None,
    ) -> None:
        """Declares types, with the defaults of their tasks, the limits they need, and pipelines of them.

        A file is declared as a whole, code type by type. A limit is set only if its declaration differs from
        the previous one of the same origin, so that changes by hand since then are kept. Many types and
        limits of code are declared in parts, limits first, so that no act takes long: if a part is refused,
        those before it are declared.
        """
        plans = [
            {"name": name, "text": to_json(name, stages)}
            for name, stages in sorted((pipelines or {}).items())
        ]
        tables = declared_limits(limits), declared_types(types), plans
        rows = [(table, row) for table in range(len(tables)) for row in tables[table]]
        size = len(rows) if origin == "file" else DECLARED_AT_ONCE
        for start in range(0, len(rows) or 1, size or 1):
            part = rows[start : start + size]
            some_limits, some_types, some_plans = (
                [row for of, row in part if of == table] for table in range(3)
            )
            await self.run("declare", origin, pack(some_types), pack(some_limits), pack(some_plans))

    async def confirm(self, types: Iterable[str], pipelines: Iterable[str]) -> bool:
        """Whether all of these that code declared are known; they are kept for another day."""
        rows = [("types", name) for name in types] + [("pipelines", name) for name in pipelines]
        missing = False
        for start in range(0, len(rows), CONFIRMED_AT_ONCE):
            part = rows[start : start + CONFIRMED_AT_ONCE]
            named = ([name for kind, name in part if kind == one] for one in ("types", "pipelines"))
            missing |= (await self.run("confirm", *map(pack, named)))["missing"]
        return not missing

    @tracing.of_submits
    async def submit(self, *tasks: NewTask) -> list[Submitted | errors.FairleadError]:
        """Accepts up to 1,000 tasks at once; the answers are in order.

        When the server refuses a part of them (it is full, say), it may have accepted others.
        """
        if len(tasks) > MOST_PER_CALL:
            raise errors.InvalidInput("tasks", f"{len(tasks)} at once, at most {MOST_PER_CALL} are accepted")
        batch = Batch.of(tasks, lambda task: spec_of(task, self.settings))
        batch = batch.without(await claim_all(self.blobs, batch.accepted))
        parts = list(in_parts(batch.accepted))
        answers, _ = await self.connection.run_each(*(("submit", pack(part), self.clock()) for part in parts))
        answered = replies.submitted_parts(map(len, parts), answers)
        accepted = [one.task_id for one in answered if isinstance(one, Submitted)]
        await self.acceptance.confirm("task", accepted)
        return batch.answers(answered)

    @tracing.of_submit
    async def submit_one(self, task: NewTask) -> Submitted:
        spec = spec_of(task, self.settings)
        await claim(self.blobs, spec)
        (row,) = (await self.run("submit", pack([spec])))["rows"]
        submitted = replies.submitted(row)
        await self.acceptance.confirm("task", [submitted.task_id])
        return submitted

    async def claim(
        self,
        worker: str,
        want: int = 1,
        *,
        lease_ms: int | None = None,
        idle: bool = False,
        request: str = "",
        acknowledged: Iterable[int] | None = None,
        capabilities: Iterable[str] | None = None,
        content: Content = msgspec.json.decode,
    ) -> Claimed:
        """Up to `want` tasks that can start now. The same `request` gets the same answer.

        `idle`: if there are fewer, the worker is woken as soon as there is more. `acknowledged`: it may then
        be handed a task at once; these are the fences of those that have reached it. `capabilities`: what
        the worker offers from now on.
        """
        call = self._claim_call(worker, want, lease_ms, idle, request, acknowledged, capabilities)
        return replies.claimed(await self.connection.run(*call), content)

    def _claim_call(
        self,
        worker: str,
        want: int,
        lease_ms: int | None,
        idle: bool,
        request: str,
        acknowledged: Iterable[int] | None = None,
        capabilities: Iterable[str] | None = None,
    ) -> tuple[Any, ...]:
        check_name("worker_id", worker)
        lease, wait = lease_ms or self.settings.lease_ms, (1 if acknowledged is None else 2) if idle else 0
        offered = "" if capabilities is None else listed("capabilities", capabilities)
        fences = " ".join(map(str, acknowledged or ()))
        most = min(want, MOST_PER_CALL)
        return ("claim", worker, most, lease, wait, request, fences, offered, self.clock())

    async def report(
        self,
        worker: str,
        completed: Sequence[Completed] = (),
        failed: Sequence[Failed] = (),
        *,
        claim: int = 0,
        idle: bool = False,
        request: str = "",
        acknowledged: Iterable[int] | None = None,
    ) -> tuple[list[State | errors.FairleadError], Claimed]:
        """Results, failures and the next claim in one round trip."""
        batches = {
            "complete": Batch.of(completed, Completed.packed),
            "fail": Batch.of(failed, Failed.packed),
        }
        calls: list[tuple[Any, ...]] = [
            (act, worker, pack(part), self.clock())
            for act, batch in batches.items()
            for part in in_parts(batch.accepted)
        ]
        if claim:
            calls.append(self._claim_call(worker, claim, None, idle, request, acknowledged))
        answers, passed_over = await self.connection.run_together(*calls)
        claimed = replies.claimed(answers.pop()) if claim else Claimed()
        if passed_over:  # it ran before the reports that make room for it
            claimed = replace(claimed, again=True)
        rows = (row for answer in answers for row in replies.expect_ok(answer)["rows"])
        states = map(replies.state_or_error, rows)
        return [answer for batch in batches.values() for answer in batch.answers(states)], claimed

    async def complete(self, worker: str, *reports: Completed) -> list[State | errors.FairleadError]:
        return (await self.report(worker, completed=reports))[0]

    async def fail(self, worker: str, *reports: Failed) -> list[State | errors.FairleadError]:
        return (await self.report(worker, failed=reports))[0]

    async def expire(self, worker: str = "") -> int:
        """Ends the leases that ran out, or all of a worker that is known to be dead; returns how many."""
        if worker:
            check_name("worker_id", worker)
        ended, more = 0, True
        while more:
            answer = await self.run("expire", worker)
            ended, more = ended + answer["ended"], answer["more"]
        return ended

    async def promote(self) -> int:
        """Ends delays and waits, promotes by age, refills rates; returns how many it moved."""
        moved = 0
        for _ in range(PROMOTING_ACTS):
            answer = await self.run("promote")
            moved += answer["moved"]
            if not answer["more"]:
                break
        return moved

    async def pause_type(self, task_type: str, paused: bool = True) -> None:
        check_name("task_type", task_type)
        await self.run("pause", "type", task_type, int(paused))

    async def stats(self, tenant: str | None = None, *, brief: bool = False) -> Stats:
        """A tenant has no workers; `brief`: without what the workers offer."""
        check_short("tenant", tenant)
        # The queues first: a task that is claimed between the reads is then counted twice, never left out.
        answer = await self.run("stats", tenant or "")
        if tenant is not None:
            return replies.read_stats(answer, [])
        workers, lag = await self.workers.all(brief=brief), await self.outbox.lag()
        found = replies.read_stats(answer, workers)
        return replace(found, history_lag_seconds=lag.seconds, unrecorded_events=lag.events) if lag else found

    async def explain(self, task_id: str, *, brief: bool = False) -> Explanation:
        return await self.jobs.explain_task(task_id, brief=brief)

    async def forecast(
        self, limits: Sequence[str] = (), *, seconds: float = 600, follow: str | None = None
    ) -> Forecast:
        """Who holds each limit until when, and who is expected to start next.

        Of these limits, or of those with the longest waits. `follow`: the id of a task or a job.
        """
        followed = await self.following.either(follow) if follow else None
        return replace(await self.forecasts.get(limits, seconds=seconds), follow=followed)


async def _nobody_else(missing: list[Accepted]) -> list[Accepted]:
    return missing


async def _nothing_to_do() -> None:
    """A server that we did not start comes back by itself, and the next call connects again."""
