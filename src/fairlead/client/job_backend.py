"""The way to jobs, as the front and the command line use it: to the store, or to a gateway over HTTP."""

from collections.abc import AsyncGenerator
from typing import Protocol

from fairlead.backend import Backend, Reopens
from fairlead.live.job_feed import JobFeed
from fairlead.live.messages import Message
from fairlead.model.job import Job, NewJob, SubmittedJob
from fairlead.pipeline.pipelines import submit_job
from fairlead.store.store import Store


class JobsBackend(Reopens, Protocol):
    async def submit(self, job: NewJob) -> SubmittedJob: ...

    async def get(self, job_id: str) -> Job: ...

    async def cancel(self, job_id: str) -> None: ...

    async def resume(self, job_id: str) -> list[str]: ...

    def watch(self, job: Job) -> AsyncGenerator[Message]: ...


class StoreJobs:
    """What a gateway does for its clients, done here: the plan of a job, and its messages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.get = store.jobs.get
        self.cancel = store.jobs.cancel
        self.resume = store.jobs.resume

    async def reopen(self) -> None:
        await self._store.reopen()

    async def submit(self, job: NewJob) -> SubmittedJob:
        return await submit_job(self._store.jobs, job)

    def watch(self, job: Job) -> AsyncGenerator[Message]:
        return JobFeed(self._store, job).messages(0)


def jobs_of(backend: Backend) -> JobsBackend:
    if isinstance(backend, Store):
        return StoreJobs(backend)
    from fairlead.client.client import Client  # a command on the engine itself need not load it

    assert isinstance(backend, Client)
    return backend.jobs
