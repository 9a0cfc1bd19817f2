"""The handlers of an app of the tests, run in another place than they say."""

import functools
from collections.abc import Callable
from typing import Any

from fairlead import Fairlead
from fairlead.worker.handler import RunIn

PLACES: tuple[RunIn, ...] = ("loop", "thread", "process")


def move(handlers_of: Fairlead, to: Fairlead, place: RunIn) -> None:
    """Gives `to` the handlers of an app whose module other processes can import."""
    for name, handler in handlers_of.handlers.items():
        if place == "thread" and handler.is_async:
            continue
        in_loop = place == "loop" and not handler.is_async
        to.task(name, run_in=place)(_as_coroutine(handler.function) if in_loop else handler.function)


def _as_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def coroutine(**arguments: Any) -> Any:
        return function(**arguments)

    return coroutine
