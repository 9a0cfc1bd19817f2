"""The way to jobs and to live messages: to the store, or to a gateway over HTTP."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol, Unpack

import msgspec

from fairlead.backend import Backend, Reopens
from fairlead.live.feed import JobFeed, TaskFeed
from fairlead.live.messages import Message
from fairlead.model.job import Job, JobExplanation, JobFilter, JobPage, NewJob, SubmittedJob
from fairlead.pipeline.pipelines import submit_job
from fairlead.store.store import Store

if TYPE_CHECKING:
    from fairlead.client.client import Client


class JobsBackend(Reopens, Protocol):
    async def submit(self, job: NewJob) -> SubmittedJob: ...

    async def get(self, job_id: str) -> Job: ...

    async def page(self, **wanted: Unpack[JobFilter]) -> JobPage: ...

    async def explain(self, job_id: str) -> JobExplanation: ...

    async def cancel(self, job_id: str) -> None: ...

    async def resume(self, job_id: str, *, force: bool = False) -> list[str]: ...

    def watch(self, job: Job) -> AsyncGenerator[Message]: ...


class StoreJobs:
    """What a gateway does for its clients, done here: the plan of a job, and its messages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.explain = store.jobs.explain
        self.cancel = store.jobs.cancel
        self.resume = store.jobs.resume
        self.reopen = store.reopen

    async def get(self, job_id: str) -> Job:
        return await self._store.jobs.estimates.of(await self._store.jobs.get(job_id))

    async def page(self, **wanted: Unpack[JobFilter]) -> JobPage:
        return await self._store.jobs.page(**wanted)

    async def submit(self, job: NewJob) -> SubmittedJob:
        return await submit_job(self._store.jobs, job)

    def watch(self, job: Job) -> AsyncGenerator[Message]:
        return JobFeed(self._store, job).messages(0)


def jobs_of(backend: Backend) -> JobsBackend:
    return StoreJobs(backend) if isinstance(backend, Store) else client_of(backend).jobs


def task_messages(backend: Backend, task_id: str) -> AsyncGenerator[Message]:
    """The output of a task so far, its state, then each change until it has ended."""
    if isinstance(backend, Store):
        return TaskFeed(backend, task_id, content=msgspec.json.decode).messages(0)
    return client_of(backend).live.messages(task_id)


def client_of(backend: Backend) -> "Client":
    from fairlead.client.client import Client  # a command on the engine itself need not load it

    assert isinstance(backend, Client)
    return backend
