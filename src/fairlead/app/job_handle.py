"""A handle of a submitted job: wait for it, watch it, cancel it, resume it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from fairlead.backend import retry_while_unavailable
from fairlead.client.job_backend import JobsBackend
from fairlead.errors import JobCancelled, JobFailed
from fairlead.live.messages import Message
from fairlead.model.job import ENDED, Job, JobStatus, SubmittedJob

LOOK_SECONDS = 30.0  # the news of a job's end may be lost: look at least this often


class JobHandle:
    def __init__(self, jobs: JobsBackend, submitted: SubmittedJob) -> None:
        self.job_id = submitted.job_id
        self.status = submitted.status  #: when it was submitted
        self.repeated = submitted.repeated  #: the same id or idempotency key was accepted before
        self._jobs = jobs

    @classmethod
    async def of(cls, jobs: JobsBackend, job_id: str) -> "JobHandle":
        """Of a job that was submitted before."""
        return cls(jobs, SubmittedJob(job_id, (await jobs.get(job_id)).status))

    def __repr__(self) -> str:
        return f"<job {self.job_id}>"

    async def get(self) -> Job:
        """The job as it is now."""
        return await self._jobs.get(self.job_id)

    async def cancel(self) -> None:
        """Ends it, with its steps that wait or run; AlreadyFinished when it has ended."""
        await self._jobs.cancel(self.job_id)

    async def resume(self) -> list[str]:
        """Continues at the step that failed; NotResumable says why it cannot.

        Returns the steps that were to run beside it and are done already.
        """
        return await self._jobs.resume(self.job_id)

    async def wait(self, timeout: float | None = None) -> Job:
        """Waits until it has ended, and returns it in whatever state; TimeoutError when the time is over."""
        async with asyncio.timeout(timeout):
            job = await self.get()
            while job.status not in ENDED:
                await self._next_end(job)
                job = await retry_while_unavailable(self._jobs, self.get)
            return job

    async def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Its context: the result of every step, by `step_<index>_<name>`.

        Raises JobFailed, JobCancelled or TimeoutError (then it continues).
        """
        return context_of(await self.wait(timeout))

    async def watch(self) -> AsyncGenerator[Message]:
        """Its live messages until it has ended: first the steps that are done, and its present state."""
        # Fails at once if the job does not exist or the store cannot be reached.
        job = await self.get()
        async with contextlib.aclosing(self._jobs.watch(job)) as messages:
            async for message in messages:
                yield message

    async def _next_end(self, job: Job) -> None:
        """Until it may have ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS), contextlib.aclosing(self._jobs.watch(job)) as messages:
                async for _ in messages:
                    pass


def context_of(job: Job) -> dict[str, Any]:
    """Of a job that has ended; JobFailed or JobCancelled say why there is none."""
    if job.status is JobStatus.COMPLETED:
        return job.context
    if job.status is JobStatus.CANCELLED:
        raise JobCancelled(f"Job {job.job_id} was cancelled.")
    error = job.error
    assert error
    raise JobFailed(job.job_id, error.code, error.message, retryable=error.retryable, step=error.step)
