"""Handles of submitted tasks and jobs. They keep no connection, so a forked process can use them too."""

from typing import TYPE_CHECKING, Generic, TypeVar

from fairlead.app import app, handle
from fairlead.client.job_backend import jobs_of
from fairlead.model.job import SubmittedJob
from fairlead.model.task import Submitted
from fairlead.sync.connection import Connection
from fairlead.sync.forwarding import Front, blocking, held, iterated
from fairlead.sync.session import TaskSession

if TYPE_CHECKING:
    from fairlead.sync.app import Fairlead

R = TypeVar("R")


class TaskHandle(Front[handle.TaskHandle[R]], Generic[R]):
    """`R` is what the task's result is."""

    def __init__(self, app: "Fairlead", made: handle.TaskHandle[R]) -> None:
        self.task_id = made.task_id
        self.status = made.status  #: when it was submitted
        self.repeated = made.repeated  #: the same id or idempotency key was accepted before
        self.queue_position = made.queue_position
        self.warnings = made.warnings  #: for example, that no worker serves its type yet
        self.estimate = made.estimate
        self._app = app

    def __repr__(self) -> str:
        return f"<task {self.task_id}>"

    get = blocking(handle.TaskHandle.get)
    history = blocking(handle.TaskHandle.history)
    explain = blocking(handle.TaskHandle.explain)
    cancel = blocking(handle.TaskHandle.cancel)
    wait = blocking(handle.TaskHandle.wait)
    result = blocking(handle.TaskHandle[R].result)
    watch = iterated(handle.TaskHandle.watch)
    session = held(handle.TaskHandle.session, TaskSession)

    def _connected(self) -> Connection[app.Fairlead]:
        return self._app._connected()

    def _counterpart(self, connection: Connection[app.Fairlead]) -> handle.TaskHandle[R]:
        return handle.TaskHandle(connection.app.backend, Submitted(self.task_id, self.status))


class JobHandle(Front[handle.JobHandle]):
    def __init__(self, app: "Fairlead", made: handle.JobHandle) -> None:
        self.job_id = made.job_id
        self.status = made.status  #: when it was submitted
        self.repeated = made.repeated  #: the same id or idempotency key was accepted before
        self.warnings = made.warnings  #: for example, that no worker serves the type of a step yet
        self._app = app

    def __repr__(self) -> str:
        return f"<job {self.job_id}>"

    get = blocking(handle.JobHandle.get)
    explain = blocking(handle.JobHandle.explain)
    cancel = blocking(handle.JobHandle.cancel)
    resume = blocking(handle.JobHandle.resume)
    wait = blocking(handle.JobHandle.wait)
    result = blocking(handle.JobHandle.result)
    watch = iterated(handle.JobHandle.watch)

    def _connected(self) -> Connection[app.Fairlead]:
        return self._app._connected()

    def _counterpart(self, connection: Connection[app.Fairlead]) -> handle.JobHandle:
        return handle.JobHandle(jobs_of(connection.app.backend), SubmittedJob(self.job_id, self.status))
