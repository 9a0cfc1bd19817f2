"""Estimates of jobs: the waits of their steps by the forecast, and how long such runs take."""

from dataclasses import replace

import msgspec

from fairlead.estimates.durations import ALL, Durations, RunKind
from fairlead.estimates.jobs import HALF, StepLeft, done_within
from fairlead.estimates.knowledge import KIND
from fairlead.model.estimate import Estimate
from fairlead.model.job import ENDED, Job
from fairlead.store.connection import Answer
from fairlead.store.names import needs
from fairlead.store.session import Part


class JobEstimates(Part):
    async def of(self, job: Job) -> Job:
        """The job with the estimate of when it will be done, if it has not ended and enough is known."""
        if job.status in ENDED:
            return job
        return replace(job, estimate=await self.remaining(job.job_id))

    async def remaining(self, job_id: str) -> Estimate | None:
        steps, now = await self.steps_left(job_id)
        return done_within(steps, now) if steps else None

    async def steps_left(self, job_id: str) -> tuple[list[StepLeft], int]:
        """Those of its steps that have not ended, none if too little is known; and the time."""
        answer = await self._session.run("estimates_of_job", job_id)
        rows = answer["steps"]
        kinds = [RunKind(*row["kind"]) for row in rows]
        durations = await self.durations(*kinds)
        if durations is None:
            return [], answer["now"]
        steps = [
            StepLeft(
                row["stage"],
                durations.of(kind),
                Estimate.of_row(row.get("estimate")),
                row.get("started"),
                row["step"],
                tuple(needs(row["needs"])),
            )
            for row, kind in zip(rows, kinds, strict=True)
        ]
        return steps, answer["now"]

    async def add_ends(self, answer: Answer) -> None:
        """To the holders in an explanation, when their runs are expected to end."""
        holders = [one for blocker in answer["blocked_by"] for one in blocker["holders"] if one["is_task"]]
        kinds = [RunKind(*one["kind"]) for one in holders]
        durations = await self.durations(*kinds) if holders else None
        if durations is None:
            return
        for one, kind in zip(holders, kinds, strict=True):
            left = durations.of(kind).left(HALF, max(0, answer["now"] - one["since"]))
            one["expected"] = answer["now"] + round(left)

    async def durations(self, *of: RunKind) -> Durations | None:
        """As far as they are known of these kinds; None before any run has ended."""
        kinds = sorted({ALL, *(name for kind in of for name in kind.names())})
        fields = [KIND + kind for kind in kinds]
        (found,) = await self._connection.read(("HMGET", self._connection.keys.key("learnt"), *fields))
        known = {kind: text for kind, text in zip(kinds, found, strict=True) if text is not None}
        packed = {kind: msgspec.json.decode(text) for kind, text in known.items()}
        return Durations.unpacked(packed) if ALL in packed else None
