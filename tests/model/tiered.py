"""The machine with tiers: elastic runs that are shortened, and sessions that are halted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fairlead import errors
from fairlead.model.reports import Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask as StoredTask
from fairlead.model.task import Task
from fairlead.rules.limits import TIER
from fairlead.rules.values import NewTask
from fairlead.settings.tiers import Tier, Victim, tiers_of
from fairlead.store.names import needs
from tests.model.fleet import Fleet
from tests.model.machine import WORKERS, Machine
from tests.model.task_specs import TYPES, WORDS, TaskSpec, task_specs

DURATIONS = (None, None, None, "fast", "medium", "slow", "slow")


class Tiered(Fleet):
    settings: ClassVar[dict[str, Tier | Victim]] = {
        "fast": Tier(seconds=3, limit=5),
        "medium": Tier(seconds=10, limit="40%"),
        "slow": Tier(seconds=30, limit=2),
    }

    def __init__(self) -> None:
        super().__init__()
        self.admitted: str | None = None

    def tiers(self) -> dict[str, Tier | Victim]:
        return self.settings

    @rule(
        specs=st.lists(task_specs, min_size=1, max_size=6),
        durations=st.lists(st.sampled_from(DURATIONS), min_size=6, max_size=6),
    )
    def submit_in_tiers(self, specs: list[TaskSpec], durations: Sequence[str | None]) -> None:
        self.submit(
            [replace(spec, duration=duration) for spec, duration in zip(specs, durations, strict=False)]
        )

    @rule(
        worker=st.sampled_from(WORKERS),
        kind=st.sampled_from(TYPES),
        priority=st.integers(0, 2),
        waits=st.booleans(),
    )
    def submit_session(self, worker: str, kind: str, priority: int, waits: bool) -> None:
        if waits:
            self.claim(worker, 4, beat=True, idle=True)
        timeout = 60_000
        stored = StoredTask(
            task_type=kind, priority=WORDS[priority], duration="interactive", timeout_seconds=timeout / 1000
        )
        new = NewTask(
            id=stored.task_id,
            type=kind,
            base=priority,
            timeout=timeout,
            max_retries=0,
            duration="interactive",
            lease={"chat": 50_000}.get(kind, 0),
        )
        self.twin.advance(self.now)
        self.twin.reindex()
        try:
            self.wait(self.store.submit_one(stored))
        except errors.NoCapacity:
            self.twin.press()
            Machine.seen["denied"] += 1
        else:
            self.admit(new)
        self.receive_calls()
        self.admitted = None
        self.relieve()

    def admit(self, new: NewTask) -> None:
        """A worker has it already; it may learn that only with its next claim."""
        task = self.wait(self.store.get(new.id))
        self.twin.admit(new, task.assigned_worker_id, (task.lease_until or 0) - self.now, self.now)
        self.ids.append(new.id)
        self.note(task)
        self.handed.setdefault(task.assigned_worker_id, []).append(Grant(new.id, task.fence))
        self.admitted = new.id
        Machine.seen["admitted"] += 1

    @rule(
        kinds=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3),
        specs=st.lists(task_specs, min_size=2, max_size=8),
        durations=st.lists(st.sampled_from(DURATIONS), min_size=8, max_size=8),
    )
    def busy_with_sessions(
        self, kinds: list[str], specs: list[TaskSpec], durations: Sequence[str | None]
    ) -> None:
        for kind in kinds:
            self.submit_session("w0", kind, 1, waits=True)
        self.submit_in_tiers(specs, durations)
        for worker in WORKERS:
            self.claim(worker, 4, beat=True)

    def hand(self, worker: str, task: Task) -> bool:
        if self.admitted == task.task_id:
            return False
        return super().hand(worker, task)

    def relieve(self) -> None:
        idle = [worker for worker in self.twin.workers.values() if self.wait(self._is_idle(worker.id))]
        if not self.twin.relieve_many(idle, self.now):
            self.twin.relieve_slots(self.now)
        pending = [task for task in self.twin.running.values() if task.relieves]
        Machine.seen["revoked"] += sum(bool(task.revoked) for task in pending)
        Machine.seen["halted"] += sum(task.interactive for task in pending)

    async def _is_idle(self, worker: str) -> bool:
        key = self.store.connection.keys.key("worker", worker)
        return bool(await self.store.connection.client.hexists(key, "idle"))

    @rule(number=st.integers(0, 99))
    def confirm(self, number: int) -> None:
        """A worker confirms the deadlines that it was sent."""
        chosen = [task for task in self.twin.running.values() if task.revoked and task.stopping is None]
        if chosen:
            task = chosen[number % len(chosen)]
            self.both(
                lambda: self.twin.shortened(task.id, task.fence, task.worker or ""),
                self.store.shortened(task.worker or "", Grant(task.id, task.fence)),
            )

    @rule(number=st.integers(0, 99))
    def halted_session_ends(self, number: int) -> None:
        chosen = [task for task in self.twin.running.values() if task.interactive and task.stopping]
        if chosen:
            task = chosen[number % len(chosen)]
            fence, worker = task.stopping or 0, task.worker or ""
            self.both(
                lambda: self.twin.release(task.id, fence, self.now, worker),
                self.store.release(worker, Grant(task.id, fence)),
            )

    def as_stored(self, known: dict[str, Any]) -> dict[str, Any]:
        facts = super().as_stored(known)
        if known["state"] == "executing":
            facts |= {name: needs(known.get(name, "")) for name in ("optional", "revoked")}
            facts |= {
                "tier": known.get("tier"),
                "bounded": "bounded" in known,
                "relieves": known.get("relieves", "").partition(":")[0] or None,
            }
        return facts

    def as_ruled(self, task_id: str) -> dict[str, Any]:
        facts, task = super().as_ruled(task_id), self.twin.tasks[task_id]
        if task.state is State.EXECUTING:
            facts |= {
                name: getattr(task, name) for name in ("optional", "revoked", "tier", "bounded", "relieves")
            }
        return facts

    async def _compare(self) -> None:
        await super()._compare()
        keys, client = self.store.connection.keys, self.store.connection.client
        for name in tiers_of(self.settings):
            used = await client.hget(keys.key("limit", TIER + name), "used")
            assert int(used or 0) == self.twin.ledger.used(TIER + name), name
