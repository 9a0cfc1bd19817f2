"""Handles of submitted tasks and jobs: wait for one, watch it, cancel it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from fairlead.app.session import TaskSession
from fairlead.backend import Backend, retry_while_unavailable
from fairlead.client.job_backend import task_messages
from fairlead.client.resumable import Resumable
from fairlead.client.sessions import session_of
from fairlead.errors import JobCancelled, JobFailed, TaskCancelled, TaskFailed
from fairlead.model.event import Event
from fairlead.model.explanation import Explanation
from fairlead.model.job import ENDED, Job, JobExplanation, JobStatus, SubmittedJob
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import HALTED, Submitted, Task
from fairlead.model.task_history import TaskHistory

if TYPE_CHECKING:
    from fairlead.client.job_backend import JobsBackend
    from fairlead.live.messages import Message

R = TypeVar("R")

# The news of the end of a task or a job may be lost: look at least this often.
LOOK_SECONDS = 5.0
JOB_LOOK_SECONDS = 30.0


@contextlib.asynccontextmanager
async def ending_within(seconds: float | None, what: str) -> AsyncGenerator[None]:
    """A TimeoutError that says what has not ended."""
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            yield
    except TimeoutError as problem:
        if not timeout.expired():
            raise
        raise TimeoutError(f"{what} has not ended within {seconds:g} s; it continues.") from problem


class TaskHandle(Generic[R]):
    """`R` is what the task's result is."""

    def __init__(self, backend: Backend, submitted: Submitted) -> None:
        self.task_id = submitted.task_id
        self.status = submitted.status  #: when it was submitted
        self.repeated = submitted.repeated  #: the same id or idempotency key was accepted before
        self.queue_position = submitted.queue_position
        self.warnings = submitted.warnings  #: for example, that no worker serves its type yet
        self.estimate = submitted.estimate  #: of its wait; None when nothing is known yet
        self._backend = backend

    def __repr__(self) -> str:
        return f"<task {self.task_id}>"

    async def get(self) -> Task:
        """The task as it is now."""
        return await self._backend.get(self.task_id)

    async def history(self) -> TaskHistory:
        """What has happened to it: its events and runs; NoHistory where nothing is recorded."""
        return await self._backend.history(self.task_id)

    async def explain(self) -> Explanation:
        """Why it waits."""
        return await self._backend.explain(self.task_id)

    async def cancel(self) -> None:
        """Ends it, also while it runs; AlreadyFinished when it has ended."""
        await self._backend.cancel(self.task_id)

    async def wait(self, timeout: float | None = None) -> Task:
        """Waits until it has ended, and returns it in whatever state; TimeoutError when the time is over."""
        async with (
            ending_within(timeout, f"Task {self.task_id}"),
            self._backend.live.watch(self.task_id) as events,
        ):
            task = await self.get()
            while task.status not in TERMINAL:
                await self._next_end(events)
                task = await retry_while_unavailable(self._backend, self.get)
            return task

    async def result(self, timeout: float | None = None) -> R:
        """What the handler returned. Raises TaskFailed, TaskCancelled or TimeoutError (then it continues)."""
        return cast(R, result_of(await self.wait(timeout)))

    async def watch(self) -> "AsyncGenerator[Message]":
        """Its live messages until it has ended: first its output so far and its present state."""
        await self.get()  # fails at once if the task does not exist or the store cannot be reached
        async with contextlib.aclosing(task_messages(self._backend, self.task_id)) as messages:
            async for message in messages:
                yield message

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncGenerator[TaskSession]:
        """Exchanges frames with the handler of an interactive task, which ends with the block."""
        async with (
            session_of(self._backend, self.task_id) as session,
            Resumable(session.messages()) as messages,
        ):
            yield TaskSession(session, messages)

    async def _next_end(self, events: AsyncIterator[Event | None]) -> None:
        """Until it may have ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                async for event in events:
                    if event is None or event.after in TERMINAL:
                        return


def result_of(task: Task) -> Any:
    """Of a task that has ended; TaskFailed or TaskCancelled say why there is none."""
    if task.status is State.COMPLETED:
        return task.result
    error = task.error
    if task.status is State.CANCELLED:
        # any other error is that of an earlier run
        why = f" ({HALTED}): {error.message}" if error and error.code == HALTED else "."
        raise TaskCancelled(f"Task {task.task_id} was cancelled{why}")
    assert error
    raise TaskFailed(task.task_id, error.code, error.message, error.retriable, error.traceback)


class JobHandle:
    def __init__(self, jobs: "JobsBackend", submitted: SubmittedJob) -> None:
        self.job_id = submitted.job_id
        self.status = submitted.status  #: when it was submitted
        self.repeated = submitted.repeated  #: the same id or idempotency key was accepted before
        self.warnings = submitted.warnings  #: for example, that no worker serves the type of a step yet
        self._jobs = jobs

    def __repr__(self) -> str:
        return f"<job {self.job_id}>"

    async def get(self) -> Job:
        """The job as it is now."""
        return await self._jobs.get(self.job_id)

    async def explain(self) -> JobExplanation:
        """What its current steps wait for, or how it ended; `sentence` says it in words."""
        return await self._jobs.explain(self.job_id)

    async def cancel(self) -> None:
        """Ends it, with its steps that wait or run; AlreadyFinished when it has ended."""
        await self._jobs.cancel(self.job_id)

    async def resume(self, *, force: bool = False) -> list[str]:
        """Continues at the step that failed, with all its attempts; NotResumable says why it cannot.

        After a permanent error only with `force`, which a gateway allows to admins. Returns the steps that
        were to run beside it and are done already.
        """
        return await self._jobs.resume(self.job_id, force=force)

    async def wait(self, timeout: float | None = None) -> Job:
        """Waits until it has ended, and returns it in whatever state; TimeoutError when the time is over."""
        async with ending_within(timeout, f"Job {self.job_id}"):
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

    async def watch(self) -> "AsyncGenerator[Message]":
        """Its live messages until it has ended: first the steps that are done, and its present state."""
        # Fails at once if the job does not exist or the store cannot be reached.
        job = await self.get()
        async with contextlib.aclosing(self._jobs.watch(job)) as messages:
            async for message in messages:
                yield message

    async def _next_end(self, job: Job) -> None:
        """Until it may have ended."""
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(JOB_LOOK_SECONDS),
                contextlib.aclosing(self._jobs.watch(job)) as messages,
            ):
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
