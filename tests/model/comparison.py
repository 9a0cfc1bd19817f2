"""The rules and the store beside each other: the same answers, tasks and limits after every act."""

import asyncio
from collections import Counter
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from fairlead import errors
from fairlead.model.states import State
from fairlead.rules.twin import Twin
from fairlead.store.doctor.doctor import examine
from fairlead.store.records import read_record
from fairlead.store.store import Store
from tests.model.task_specs import LIMITS
from tests.reading import events_of


class Comparison(RuleBasedStateMachine):
    """One history: its own namespace, a virtual clock, and the acts that both have done.

    Every task and limit is compared after every act; the doctor's check is made after every `doctor_every`
    acts and at the end.
    """

    url: ClassVar[str] = ""
    doctor_every: ClassVar[int] = 1
    seen: ClassVar[Counter[str]] = Counter()  # transitions and holds of all histories
    loop: ClassVar[asyncio.AbstractEventLoop]

    twin: Twin
    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.ids: list[str] = []
        self.compared = 0

    def wait(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def both(self, in_twin: Any, in_store: Any, *, relieves: bool = True) -> Any:
        """Runs both; the same answer or the same error. `relieves`: the act of the store ends with relief."""
        try:
            expected: Any = in_twin()
        except errors.FairleadError as problem:
            expected = type(problem)
        self.twin.reindex()
        try:
            found = self.wait(in_store)
            has_run = True
            if isinstance(found, list) and len(found) == 1 and isinstance(found[0], errors.FairleadError):
                found = type(found[0])
        except errors.FairleadError as problem:
            found, has_run = type(problem), False
        if isinstance(expected, type) or isinstance(found, type):
            assert found == expected, f"the store says {found}, the rules say {expected}"
        if relieves and has_run:
            self.relieve()
        return expected, found

    def relieve(self) -> None:
        """What the end of an act takes back for waiting tasks; here nothing, because there are no tiers."""

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "twin"):
            return
        self.wait(self._compare())

    async def _compare(self) -> None:
        keys, client = self.store.connection.keys, self.store.connection.client
        pipeline = client.pipeline(transaction=False)
        for task_id in self.ids:
            pipeline.hgetall(keys.key("task", task_id))
        for name in LIMITS:
            pipeline.hget(keys.key("limit", name), "used")
        *records, one, two, gpu, _ = await pipeline.execute()
        for task_id, record in zip(self.ids, records, strict=True):
            stored, ruled = self.as_stored(read_record(record)), self.as_ruled(task_id)
            assert stored == ruled, (task_id, stored, ruled)
        for name, used in zip(LIMITS, (one, two, gpu), strict=False):
            assert int(used or 0) == self.twin.ledger.used(name), name
        self.seen["holds"] += len(self.twin.ledger.holds)
        self.compared += 1
        if self.compared % self.doctor_every == 0:
            await self._examine()

    async def _examine(self) -> None:
        breaches = await examine(self.store.connection, now_ms=self.now, twice=False)
        assert not breaches, breaches

    def as_stored(self, known: dict[str, Any]) -> dict[str, Any]:
        numbers = {
            name: int(known.get(name, 0)) for name in ("fence", "retries", "crashes", "losses", "timeout")
        }
        facts: dict[str, Any] = {"state": known["state"], **numbers}
        if known["state"] == "queued":
            facts |= {"place": known["place"]} | {
                name: int(known[name]) for name in ("tag", "seq", "arrival")
            }
        if known["state"] == "executing":
            facts |= {"worker": known["worker"]} | {
                name: int(known[name]) for name in ("deadline", "lease_until")
            }
        if known["state"] == "delayed":
            facts["run_at"] = int(known["run_at"])
        return facts

    def as_ruled(self, task_id: str) -> dict[str, Any]:
        task = self.twin.tasks[task_id]
        facts: dict[str, Any] = {"state": str(task.state)}
        facts |= {name: getattr(task, name) for name in ("fence", "retries", "crashes", "losses", "timeout")}
        if task.state is State.QUEUED:
            facts |= {name: getattr(task, name) for name in ("place", "tag", "seq", "arrival")}
        if task.state is State.EXECUTING:
            facts |= {name: getattr(task, name) for name in ("worker", "deadline", "lease_until")}
        if task.state is State.DELAYED:
            facts["run_at"] = task.run_at
        return facts

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return

        async def end() -> None:
            await self._examine()
            client = self.store.connection.client
            for event in await events_of(self.store):
                self.seen[f"{event['act']}:{event['to']}"] += 1
            for task in self.twin.tasks.values():
                self.seen["losses"] += task.losses
                self.seen["crashes"] += task.crashes
            found = [
                key
                async for key in client.scan_iter(match=self.store.connection.keys.prefix + "*", count=1000)
            ]
            if found:
                await client.delete(*found)
            await self.store.close()

        self.wait(end())
