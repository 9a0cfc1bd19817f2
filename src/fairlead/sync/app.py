"""The blocking front: the async `Fairlead`, run by an event loop in the background."""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from fairlead.app import app, handle
from fairlead.app.many import NotAllSubmitted, submit_all
from fairlead.errors import FairleadError
from fairlead.model.task import NewTask
from fairlead.sync.forwarding import blocking, held
from fairlead.sync.function import Decorator
from fairlead.sync.handle import JobHandle, TaskHandle
from fairlead.sync.opened import Opened

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def declaring(
    method: Callable[Concatenate[app.Fairlead, P], R], shown: Callable[["Fairlead", R], S]
) -> Callable[Concatenate["Fairlead", P], S]:
    """What needs no connection. `shown` makes of the result what the blocking API returns."""

    @functools.wraps(method)
    def declare(front: "Fairlead", /, *args: P.args, **kwargs: P.kwargs) -> S:
        return shown(front, method(front.async_app, *args, **kwargs))

    return declare


def nothing(front: "Fairlead", _: None) -> None:
    pass


async def answers_of(
    async_app: app.Fairlead, tasks: Iterable[NewTask]
) -> list[handle.TaskHandle[Any] | FairleadError]:
    return await submit_all(async_app.backend, list(tasks))


def shown(
    front: "Fairlead", made: list[handle.TaskHandle[Any] | FairleadError]
) -> list[TaskHandle[Any] | FairleadError]:
    return [one if isinstance(one, FairleadError) else TaskHandle(front, one) for one in made]


class Fairlead(Opened[app.Fairlead]):
    """As `fairlead.Fairlead`, for code without an event loop. All threads share one.

    It connects on first use and disconnects at exit, or by `with fl:`. A forked process connects by itself.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        data: str | Path | None = None,
        namespace: str = "default",
        key: str | None = None,
        config: str | Path | None = None,
    ) -> None:
        #: For code with an event loop: the same declarations, to be opened by `async with`.
        self.async_app = app.Fairlead(url, data=data, namespace=namespace, key=key, config=config)
        super().__init__(self.async_app)

    limit = declaring(app.Fairlead.limit, nothing)
    pipeline = declaring(app.Fairlead.pipeline, nothing)
    cron = declaring(app.Fairlead.cron, Decorator)

    @property
    def task(self) -> Decorator:
        """Makes a task of a function, by its own name unless another is given."""
        return Decorator(self, self.async_app.task)

    @overload
    def submit_many(self, tasks: Iterable[NewTask]) -> list[TaskHandle[Any]]: ...
    @overload
    def submit_many(
        self, tasks: Iterable[NewTask], *, return_errors: bool
    ) -> list[TaskHandle[Any] | FairleadError]: ...
    def submit_many(
        self, tasks: Iterable[NewTask], *, return_errors: bool = False
    ) -> Sequence[TaskHandle[Any] | FairleadError]:
        """Many at once, made by `function.new(...)`; the handles are in the same order."""
        answers = self._submit_all(tasks)
        if not return_errors and any(isinstance(one, FairleadError) for one in answers):
            raise NotAllSubmitted(answers)
        return answers

    submit = blocking(app.Fairlead.submit, TaskHandle)
    submit_new = blocking(app.Fairlead.submit_new, TaskHandle)
    _submit_all = blocking(answers_of, shown)
    get = blocking(app.Fairlead.get, TaskHandle)
    run = blocking(app.Fairlead.run)
    submit_job = blocking(app.Fairlead.submit_job, JobHandle)
    get_job = blocking(app.Fairlead.get_job, JobHandle)
    list_tasks = blocking(app.Fairlead.list_tasks)
    list_jobs = blocking(app.Fairlead.list_jobs)
    forecast = blocking(app.Fairlead.forecast)
    blob = blocking(app.Fairlead.blob)
    open = held(app.Fairlead.open)
    acquire = held(app.Fairlead.acquire)
    worker = held(app.Fairlead.worker)
