"""Jobs of a gateway, which knows their pipelines: a job is submitted by the name of its pipeline."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import httpx

from fairlead.client.bodies import job_body
from fairlead.client.live import ENDS, PAUSE, NothingNew, messages_of
from fairlead.client.transport import HttpTransport, path
from fairlead.errors import StoreUnavailable
from fairlead.model.job import Job, NewJob, SubmittedJob, check_job_id
from fairlead.shapes.base import Json
from fairlead.shapes.job import CancelJobAnswer, JobAnswer, ResumeAnswer, SubmittedJobAnswer


class Jobs:
    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def reopen(self) -> None:
        """Nothing to do: the next call connects again."""

    async def submit(self, job: NewJob) -> SubmittedJob:
        """A job has its own id, so a request without an answer is repeated."""
        address = path("api", "v1", "jobs")
        answer = await self._transport.post(SubmittedJobAnswer, address, job_body(job), repeat=True)
        return answer.to_value()

    async def get(self, job_id: str) -> Job:
        return (await self._transport.get(JobAnswer, _job(job_id))).to_value()

    async def cancel(self, job_id: str) -> None:
        """Cancels it, with its steps that wait or run. Repeating it changes nothing."""
        await self._transport.ask(CancelJobAnswer, "DELETE", _job(job_id), repeat=True)

    async def resume(self, job_id: str) -> list[str]:
        """Resumes it at the stage that failed; returns the steps of that stage that are not run again."""
        return (await self._transport.post(ResumeAnswer, _job(job_id, "resume"))).skipped

    async def watch(self, job: Job) -> AsyncGenerator[Json]:
        """Its messages until it has ended; after a lost connection they continue where they were."""
        after, address = 0, _job(job.job_id, "events")
        while True:
            with contextlib.suppress(httpx.TransportError, TimeoutError, StoreUnavailable):
                try:
                    async with contextlib.aclosing(messages_of(self._transport, address, after)) as messages:
                        async for message in messages:
                            after = message["seq"]
                            yield message
                            if message["type"] in ENDS:
                                return
                except NothingNew:
                    return
            await asyncio.sleep(PAUSE)


def _job(job_id: str, *parts: str) -> str:
    return path("api", "v1", "jobs", check_job_id(job_id), *parts)
