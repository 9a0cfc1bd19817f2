"""Jobs of a gateway, which knows their pipelines: a job is submitted by the name of its pipeline."""

from collections.abc import AsyncGenerator
from typing import Unpack

from fairlead.client.bodies import job_body
from fairlead.client.live import all_messages_of
from fairlead.client.transport import Part, path
from fairlead.model.job import Job, JobExplanation, JobFilter, JobPage, NewJob, SubmittedJob, check_job_id
from fairlead.shapes.base import Json, with_time_texts
from fairlead.shapes.job import (
    CancelJobAnswer,
    JobAnswer,
    JobExplainAnswer,
    JobsAnswer,
    ResumeAnswer,
    SubmittedJobAnswer,
)


class Jobs(Part):
    async def reopen(self) -> None:
        """Nothing to do: the next call connects again."""

    async def submit(self, job: NewJob) -> SubmittedJob:
        """A job has its own id, so a request without an answer is repeated."""
        address = path("api", "v1", "jobs")
        answer = await self._transport.post(SubmittedJobAnswer, address, job_body(job), repeat=True)
        return answer.to_value()

    async def get(self, job_id: str) -> Job:
        return (await self._transport.get(JobAnswer, _job(job_id))).to_value()

    async def page(self, **wanted: Unpack[JobFilter]) -> JobPage:
        page = await self._transport.get(JobsAnswer, path("api", "v1", "jobs"), **with_time_texts(wanted))
        return JobPage([one.to_value() for one in page.jobs], page.next_cursor or "", page.warnings)

    async def explain(self, job_id: str) -> JobExplanation:
        return (await self._transport.get(JobExplainAnswer, _job(job_id, "explain"))).to_value()

    async def cancel(self, job_id: str) -> None:
        """Cancels it, with its steps that wait or run. Repeating it changes nothing."""
        await self._transport.ask(CancelJobAnswer, "DELETE", _job(job_id), repeat=True)

    async def resume(self, job_id: str, *, force: bool = False) -> list[str]:
        query = {"force": "true"} if force else None
        return (await self._transport.post(ResumeAnswer, _job(job_id, "resume"), query=query)).skipped

    def watch(self, job: Job) -> AsyncGenerator[Json]:
        return all_messages_of(self._transport, _job(job.job_id, "events"))


def _job(job_id: str, *parts: str) -> str:
    return path("api", "v1", "jobs", check_job_id(job_id), *parts)
