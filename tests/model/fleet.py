"""The machine with a fleet that changes, and with jobs: profiles come and go, and steps follow."""

from typing import Any

import uuid_utils
from hypothesis import strategies as st
from hypothesis.stateful import rule

from fairlead.model.job import NewJob, NewStep
from fairlead.rules.values import NewTask
from tests.model.machine import Machine
from tests.model.task_specs import CAPABILITIES, LEASES, TYPES, UNSERVED, WEIGHTS, WORDS, account

GUESTS = ("x0", "x1")
PROFILES = (None, frozenset({"chat"}), frozenset({UNSERVED}), frozenset({UNSERVED, "render"}))
TIMEOUTS = {0: 300_000, 1: 600_000, 2: 900_000}
RETRIES = 8


class Fleet(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, list[NewTask]] = {}  # by the task of a step: those that follow it

    @rule(
        worker=st.sampled_from(GUESTS),
        types=st.sampled_from(PROFILES),
        capabilities=st.sampled_from(CAPABILITIES),
        reserve=st.sampled_from((0, 0, 2)),
        want=st.integers(0, 3),
    )
    def join(
        self, worker: str, types: frozenset[str] | None, capabilities: frozenset[str], reserve: int, want: int
    ) -> None:
        """A worker of a profile that may be new, which claims at once; some run only high priority."""
        self.register(worker, capabilities, types, 2, reserve)
        if want:
            self.claim(worker, want, beat=False)

    @rule(worker=st.sampled_from(GUESTS), want=st.integers(1, 2), idle=st.booleans())
    def guest_claims(self, worker: str, want: int, idle: bool) -> None:
        if worker in self.twin.workers:
            self.claim(worker, want, beat=False, idle=idle, acknowledged=True)

    @rule(worker=st.sampled_from(GUESTS))
    def drain(self, worker: str) -> None:
        if worker in self.twin.workers:
            self.both(
                lambda: self.twin.drain(worker, self.now), self.store.workers.drain(worker), relieves=False
            )

    @rule()
    def bury(self) -> None:
        self.both(lambda: self.twin.bury(self.now), self.store.upkeep.bury())

    @rule(
        kinds=st.lists(st.sampled_from([*TYPES, UNSERVED]), min_size=2, max_size=4),
        priority=st.integers(0, 2),
        user=st.sampled_from(["", "ann", "bob"]),
    )
    def submit_job(self, kinds: list[str], priority: int, user: str) -> None:
        job = NewJob(
            feature_name="model",
            stages=[[NewStep(f"s{number}", kind)] for number, kind in enumerate(kinds)],
            priority=WORDS[priority],
            user_id=user or None,
            job_id=str(uuid_utils.uuid7()),
        )
        _, submitted = self.both(lambda: None, self.store.jobs.submit(job), relieves=False)
        self.wait(self._begin_job(submitted.job_id, kinds, priority, user))
        self.receive_calls()
        self.relieve()

    async def _begin_job(self, job_id: str, kinds: list[str], priority: int, user: str) -> None:
        """As the store has done it: all steps are charged, and the first is queued."""
        stored: Any = await self.store.jobs.get(job_id)
        fair = account("", user)
        self.twin.begin_job(job_id, fair, len(kinds))
        new = [
            NewTask(
                id=step.task_id,
                type=kind,
                base=priority,
                fair=fair,
                weight=WEIGHTS.get(user, 1.0),
                timeout=TIMEOUTS[priority],
                max_retries=RETRIES,
                lease=LEASES.get(kind, 0),
                arrival=None if number == 0 else self.now,
                job=job_id,
                step=number,
            )
            for number, (step, kind) in enumerate(zip(stored.steps, kinds, strict=True))
        ]
        for number, step in enumerate(new):
            self.steps[step.id] = new[number + 1 : number + 2]
        self.twin.submit(new[0], self.now)
        self.twin.reindex()
        self.ids.append(new[0].id)

    def following(self, task_id: str) -> list[NewTask]:
        return [step for step in self.steps.get(task_id, []) if step.id not in self.twin.tasks]
