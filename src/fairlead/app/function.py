"""A decorated function: still the function it was, and something that can be submitted."""

import functools
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, final, overload

from fairlead.app.options import Options, TypeOptions, check_known
from fairlead.app.task_call import TaskCall
from fairlead.model.blob import BlobRef
from fairlead.model.task import NewTask
from fairlead.settings import TaskSettings
from fairlead.worker.context import Context
from fairlead.worker.handler import Handler, place_for

if TYPE_CHECKING:
    from fairlead.app.app import Fairlead
    from fairlead.app.handle import TaskHandle

P = ParamSpec("P")
S = ParamSpec("S")
C = TypeVar("C")
R = TypeVar("R")

#: What a `def` may return. A coroutine is none of these, so no type checker takes an `async def` for a `def`.
J = TypeVar("J", bound=Collection[Any] | float | BlobRef | None)


class TaskFunction(Generic[P, S, C, R]):
    """What `@fl.task` makes of a function.

    `P` are the parameters of the function, `S` those of a submit: the same without the context. `C` is what a
    call returns, `R` the result of a task.
    """

    __name__: str

    def __init__(self, app: "Fairlead", handler: Handler, options: Mapping[str, Any] | None = None) -> None:
        functools.update_wrapper(self, handler.function)
        self.handler = handler
        self._app = app
        self._options = dict(options or {})
        #: Queues a call of the function. Its parameters are checked against the type hints first.
        self.submit: TaskCall[S, Coroutine[Any, Any, TaskHandle[R]]]
        self.submit = TaskCall(f"{self.task_type}.submit", handler, self._options, app.submit_new)
        #: The task that a submit would send, for `fl.submit_many`.
        self.new: TaskCall[S, NewTask]
        self.new = TaskCall(f"{self.task_type}.new", handler, self._options, lambda task: task)

    def __repr__(self) -> str:
        return f"<task function {self.task_type}{self.handler.parameters.signature}>"

    @property
    def task_type(self) -> str:
        return self.handler.task_type

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Calls the function itself, here and now."""
        answer: C = self.handler.function(*args, **kwargs)
        return answer

    def options(self, **options: Unpack[Options]) -> "TaskFunction[P, S, C, R]":
        """The same function with these options for every submit; those of a submit override them."""
        return TaskFunction(self._app, self.handler, {**self._options, **options})


@final
class Anything:
    """Only a parameter without a type, or of type `Any` or `object`, accepts this, and it would also accept a
    context."""


class Decorator:
    """Makes a task of a function: `@fl.task`, or with options `@fl.task("name", timeout=60)`.

    The overloads are for type checkers, in pairs for `async def` and `def`, by the place of the context: a
    checker cannot know whether there is one, it is optional, it comes first, or it comes second or third
    (which hides the parameters from the checker), or there is none.
    """

    def __init__(self, make: Callable[..., TaskFunction[..., ..., Any, Any]]) -> None:
        self._make = make

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
        check_known(options, TypeOptions.__annotations__)
        if callable(subject):
            return self._make(subject, **options)
        return Decorator(functools.partial(self._make, task_type=subject, **options))


def handler_of(function: Callable[..., Any], task_type: str | None, options: TypeOptions) -> Handler:
    """With `max_concurrent`, it needs a limit named like the task."""
    name: str = task_type or getattr(function, "__name__", "") or ""
    needs = dict(options.get("limits") or {})
    if options.get("max_concurrent") is not None:
        needs[name] = 1
    settings = TaskSettings(
        limits=needs,
        required_capabilities=list(options.get("required_capabilities", ())),
        timeout_seconds=options.get("timeout"),
        max_retries=options.get("max_retries"),
    )
    return Handler(name, function, place_for(function, options.get("run_in")), settings)
