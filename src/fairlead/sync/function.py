"""A decorated function whose `submit` blocks."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from fairlead.app import function
from fairlead.app.function import Anything, J
from fairlead.app.options import Options, TypeOptions
from fairlead.app.task_call import TaskCall
from fairlead.sync.handle import TaskHandle
from fairlead.worker.context import Context

if TYPE_CHECKING:
    from fairlead.sync.app import Fairlead

P = ParamSpec("P")
S = ParamSpec("S")
C = TypeVar("C")
R = TypeVar("R")


class TaskFunction(function.TaskFunction[P, S, C, R]):
    """What `@fl.task` makes of a function, with the type parameters of the async one."""

    def __init__(self, app: "Fairlead", made: function.TaskFunction[P, S, C, R]) -> None:
        super().__init__(app.async_app, made.handler, made._options)
        self._blocking_app = app
        #: Queues a call of the function. Its parameters are checked against the type hints first.
        self.submit: TaskCall[S, TaskHandle[R]]  # type: ignore[assignment]
        self.submit = TaskCall(f"{self.task_type}.submit", self.handler, self._options, app.submit_new)

    def options(self, **options: Unpack[Options]) -> "TaskFunction[P, S, C, R]":
        """The same function with these options for every submit; those of a submit override them."""
        return TaskFunction(self._blocking_app, super().options(**options))


class Decorator:
    """Makes a task of a function. The overloads are those of the async decorator."""

    def __init__(self, app: "Fairlead", decorate: Callable[..., Any]) -> None:
        self._app = app
        self._decorate = decorate

    @overload
    def __call__(
        self, function: Callable[Concatenate[Anything, ...], Awaitable[R]], /
    ) -> TaskFunction[..., ..., Awaitable[R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Anything, ...], J], /
    ) -> TaskFunction[..., ..., J, J]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context | None, S], Awaitable[R]], /
    ) -> TaskFunction[..., S, Awaitable[R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context | None, S], J], /
    ) -> TaskFunction[..., S, J, J]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, S], Awaitable[R]], /
    ) -> TaskFunction[Concatenate[Context, S], S, Awaitable[R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, S], J], /
    ) -> TaskFunction[Concatenate[Context, S], S, J, J]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Context, ...], Awaitable[R]], /
    ) -> TaskFunction[..., ..., Awaitable[R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Context, ...], J], /
    ) -> TaskFunction[..., ..., J, J]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Any, Context, ...], Awaitable[R]], /
    ) -> TaskFunction[..., ..., Awaitable[R], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Any, Context, ...], J], /
    ) -> TaskFunction[..., ..., J, J]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> TaskFunction[P, P, Awaitable[R], R]: ...
    @overload
    def __call__(self, function: Callable[P, J], /) -> TaskFunction[P, P, J, J]: ...
    @overload
    def __call__(self, task_type: str | None = None, /, **options: Unpack[TypeOptions]) -> "Decorator": ...
    def __call__(self, subject: Any = None, /, **options: Any) -> Any:
        made = self._decorate(subject, **options)
        return TaskFunction(self._app, made) if callable(subject) else Decorator(self._app, made)
