"""One task or job through all its limits: what was, and what is expected."""

import contextlib
from collections.abc import Mapping

from fairlead.errors import UnknownTask
from fairlead.estimates.durations import RunKind
from fairlead.estimates.jobs import StepLeft, Times, times_of
from fairlead.model.forecast import Followed, FollowedStep
from fairlead.model.job import Job, JobStep
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import Task
from fairlead.model.tenants import plain_name
from fairlead.store.jobs import Jobs
from fairlead.store.queries import Queries
from fairlead.store.session import Part


class Following(Part):
    def __init__(self, queries: Queries, jobs: Jobs) -> None:
        super().__init__(queries)
        self._queries, self._jobs = queries, jobs

    async def either(self, known_id: str) -> Followed:
        """A task or a job."""
        with contextlib.suppress(UnknownTask):
            return await self.task(await self._queries.get(known_id))
        return await self.job(await self._jobs.get(known_id))

    async def task(self, task: Task, tenant: str | None = None) -> Followed:
        """`tenant`: without what is another tenant's."""
        explanation = await self._jobs.explain_task(task.task_id)
        if tenant is not None:
            explanation = explanation.seen_by(tenant)
        times = _past(task.status, task.started_at, task.completed_at)
        kind = RunKind(task.task_type, task.tier or "", task.size_hint or "")
        durations = await self._jobs.estimates.durations(kind)
        if task.status not in TERMINAL and durations is not None:
            started = task.started_at if task.status is State.EXECUTING else None
            left = StepLeft(0, durations.of(kind), explanation.estimate, started)
            times = times_of([left], explanation.at).get(0)
        step = FollowedStep(
            index=0,
            name=task.task_type,
            task_id=task.task_id,
            task_type=task.task_type,
            status=task.status,
            limits=tuple(task.limits),
            queued_at=task.created_at,
            **_shown(times),
        )
        return Followed(explanation.sentence, (step,))

    async def job(self, job: Job, tenant: str | None = None) -> Followed:
        explanation = await self._jobs.explain(job.job_id)
        if tenant is not None:
            explanation = explanation.seen_by(tenant)
        left, now = await self._jobs.estimates.steps_left(job.job_id)
        expected, known = times_of(left, now), {step.step: step for step in left}
        steps = [await self._step(step, expected, known.get(step.index)) for step in job.steps]
        return Followed(explanation.sentence, tuple(steps))

    async def _step(
        self, step: JobStep, expected: Mapping[int, Times], left: StepLeft | None
    ) -> FollowedStep:
        limits, task_type = tuple(map(plain_name, left.limits)) if left else (), None
        with contextlib.suppress(UnknownTask):  # it is not queued yet, or it has expired
            task = await self._queries.get(step.task_id)
            limits, task_type = tuple(task.limits), task.task_type
        return FollowedStep(
            index=step.index,
            name=step.name,
            task_id=step.task_id,
            task_type=task_type,
            status=step.status,
            stage=step.stage,
            limits=limits,
            queued_at=step.queued_at,
            **_shown(expected.get(step.index) or _past(step.status, step.started_at, step.completed_at)),
        )


def _past(status: str, started: int | None, ended: int | None) -> Times | None:
    """Of a task that has ended; one that never started has no times."""
    if status not in TERMINAL or started is None or ended is None:
        return None
    return Times(started, started, ended, ended)


def _shown(times: Times | None) -> dict[str, int]:
    return times._asdict() if times else {}
