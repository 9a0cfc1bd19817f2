"""A decorated function: still the function it was, and something that can be submitted."""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from fairlead.errors import InvalidInput
from fairlead.model.job import NewJob
from fairlead.model.task import NewTask
from fairlead.worker.handler import Handler

if TYPE_CHECKING:
    from fairlead.app.app import Fairlead
    from fairlead.app.handle import TaskHandle

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")

LISTS = (list, set, frozenset)
#: The options of a submit, by the names of `NewTask`.
OPTIONS = frozenset(NewTask.__struct_fields__) - {"task_type", "parameters", "by_tenant", "weight"}


class Options(TypedDict, total=False):
    """The options of one task, in addition to its parameters."""

    priority: Literal["high", "medium", "low"]
    user_id: str
    tenant: str
    required_capabilities: Sequence[str]
    limits: Mapping[str, int]
    concurrency_group: str
    concurrency_limit: int
    timeout_seconds: float
    max_retries: int
    max_wait_seconds: float
    delay_seconds: float
    run_at: datetime
    idempotency_key: str
    trace_id: str
    task_id: str


class JobOptions(TypedDict, total=False):
    """The options of one job, in addition to its input."""

    priority: Literal["high", "medium", "low"] | None
    user_id: str | None
    tenant: str | None
    max_wait_seconds: float | None
    idempotency_key: str | None
    trace_id: str | None
    job_id: str


class TaskFunction(Generic[P, C, R]):
    """What `@fl.task` makes of a function. `C` is what a call returns, `R` the result of a task."""

    __name__: str

    def __init__(self, app: "Fairlead", handler: Handler, options: Mapping[str, Any] | None = None) -> None:
        self.handler = handler
        self._app = app
        self._options = dict(options or {})
        functools.update_wrapper(self, handler.function)

    @property
    def task_type(self) -> str:
        return self.handler.task_type

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Calls the function itself, here and now."""
        return cast(C, self.handler.function(*args, **kwargs))

    def options(self, **options: Unpack[Options]) -> "TaskFunction[P, C, R]":
        """The same function with these options for every submit; those of a submit override them."""
        return TaskFunction(self._app, self.handler, {**self._options, **options})

    def new(self, *args: Any, **kwargs: Any) -> NewTask:
        """The task that a submit would send, for `fl.submit_many`.

        Options and parameters are distinguished by name. Where the function has a parameter named like an
        option, the parameter is meant; use `options()` for the option.
        """
        own = self.handler.parameters.names
        chosen = {name: kwargs.pop(name) for name in list(kwargs) if name in OPTIONS and name not in own}
        parameters = self.handler.parameters.bound(args, kwargs)
        return new_task(self.task_type, parameters, {**self._options, **chosen})

    async def submit(self, *args: Any, **kwargs: Any) -> "TaskHandle[R]":
        """Queues a call of the function. The parameters are checked against its type hints first.

        The signature for type checkers (parameters of the function, without its context, and the options) is
        given by `fairlead.mypy_plugin`.
        """
        return await self._app.submit_new(self.new(*args, **kwargs))


def new_task(task_type: str, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> NewTask:
    given = _given(options, OPTIONS)
    if isinstance(capabilities := given.get("required_capabilities"), LISTS):
        given["required_capabilities"] = tuple(capabilities)
    if isinstance(run_at := given.get("run_at"), datetime):
        if run_at.tzinfo is None:
            raise InvalidInput("run_at", "has no time zone: use datetime(..., tzinfo=UTC)")
        given["run_at"] = round(run_at.timestamp() * 1000)
    return NewTask(task_type=task_type, parameters=parameters, **given)


def new_job(feature_name: str, input_data: Mapping[str, Any], options: Mapping[str, Any]) -> NewJob:
    given = _given(options, JobOptions.__annotations__.keys())
    return NewJob(feature_name=feature_name, input_data=input_data, **given)


def _given(options: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    if unknown := options.keys() - known:
        raise InvalidInput("options", f"there is no option {', '.join(sorted(unknown))}")
    given = {name: value for name, value in options.items() if value is not None}
    given.setdefault("priority_asked", "priority" in given)  # else a gateway may ask its priority service
    return given


class Decorator(Protocol):
    """Makes a task of a function, whether it is `async def` or `def`."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> TaskFunction[P, Awaitable[R], R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R, R]: ...
