"""Methods of the async API as blocking ones with the same parameters: calls, `with` blocks, `for` loops."""

import asyncio
import contextlib
import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from fairlead.background import in_event_loop
from fairlead.errors import FairleadError
from fairlead.sync.connection import Connection
from fairlead.sync.held import Held

A = TypeVar("A", covariant=True)
F = TypeVar("F", bound="Front[Any]")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

END: Any = object()


class Front(ABC, Generic[A]):
    """Has a counterpart in the async API, on the connection of this process."""

    @abstractmethod
    def _connected(self) -> Connection[Any]: ...

    @abstractmethod
    def _counterpart(self, connection: Connection[Any]) -> A: ...


@overload
def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Front[A], P], R]: ...
@overload
def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]], shown: Callable[[F, R], S]
) -> Callable[Concatenate[F, P], S]: ...


def blocking(method: Any, shown: Any = lambda _, result: result) -> Any:
    """Waits for the result. `shown` makes of it what the blocking API returns."""

    @functools.wraps(method)
    def call(front: Any, /, *args: Any, **kwargs: Any) -> Any:
        connection = front._connected()

        async def called() -> Any:
            return await method(front._counterpart(connection), *args, **kwargs)

        return shown(front, connection.run(called))

    return call


@overload
def held(
    method: Callable[Concatenate[A, P], AbstractAsyncContextManager[T]],
) -> Callable[Concatenate[Front[A], P], AbstractContextManager[T]]: ...
@overload
def held(
    method: Callable[Concatenate[A, P], AbstractAsyncContextManager[T]],
    shown: Callable[[Connection[Any], T], S],
) -> Callable[Concatenate[Front[A], P], AbstractContextManager[S]]: ...


def held(method: Any, shown: Any = lambda _, value: value) -> Any:
    """Runs the `async with` block around a `with` block. `shown` makes of its value what the latter gets."""

    @functools.wraps(method)
    def hold(front: Any, /, *args: Any, **kwargs: Any) -> Any:
        connection = front._connected()

        @contextlib.asynccontextmanager
        async def entered() -> AsyncIterator[Any]:
            async with method(front._counterpart(connection), *args, **kwargs) as value:
                yield shown(connection, value)

        return Held(connection, entered())

    return hold


def iterated(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Front[A], P], Iterator[T]]:
    """Yields the items as they come."""

    @functools.wraps(method)
    def iterate(front: Front[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        connection = front._connected()
        items: asyncio.Queue[T] = asyncio.Queue(1)  # as with `async for`, the source waits for a slow reader

        async def produce() -> None:
            # in one task: what a generator opens, such as a timeout, may belong to the task that runs it
            source = cast(AsyncGenerator[T], method(front._counterpart(connection), *args, **kwargs))
            try:
                async with contextlib.aclosing(source):
                    async for item in source:
                        await items.put(item)
            except Exception:
                await items.put(END)
                raise
            await items.put(END)

        producing = connection.start(produce)
        try:
            while (item := connection.run(items.get)) is not END:
                yield item
            connection.wait(producing)
        finally:
            # without waiting: an iterator that is left behind may be collected in the loop's own thread
            connection.cancel(producing)

    return iterate


def check_may_block() -> None:
    """In a notebook a cell may block, although its kernel runs an event loop in the same thread."""
    if in_event_loop() and not _is_notebook():
        raise FairleadError(
            "This call blocks, but this thread runs an event loop: use the async API here, "
            "`from fairlead import Fairlead`, or `fl.async_app`."
        )


def _is_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return hasattr(ipython and ipython.get_ipython(), "kernel")
