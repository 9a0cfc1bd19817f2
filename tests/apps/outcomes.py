"""Handlers that end in every way a handler can; tests run each in the loop, in a thread and in a process."""

import asyncio
import contextlib
import os
import sys
import time
import urllib.error
from email.message import Message
from typing import Any

from fairlead import Context, Fairlead, PermanentError, RetriableError

fl = Fairlead()


class NoInk(PermanentError):
    """There is no ink."""

    code = "no_ink"


def http_error(status: int, retry_after: str = "") -> urllib.error.HTTPError:
    headers = Message()
    headers["Retry-After"] = retry_after
    return urllib.error.HTTPError("http://there", status, "no", headers, None)


@fl.task(run_in="process")
def returns(n: int = 1) -> dict[str, Any]:
    return {"n": n, "text": "Zoë", "nothing": None}


@fl.task(run_in="process")
def raises() -> None:
    raise ValueError("no such colour")


@fl.task(run_in="process")
def raises_retriable() -> None:
    raise RetriableError("later", retry_after=0.01)


@fl.task(run_in="process")
def raises_permanent() -> None:
    raise NoInk


@fl.task(run_in="process")
def raises_plainly_permanent() -> None:
    raise PermanentError("no ink")


@fl.task(run_in="process")
def raises_cancelled() -> None:
    raise asyncio.CancelledError


@fl.task(run_in="process")
def raises_base() -> None:
    raise KeyboardInterrupt


@fl.task(run_in="process")
def raises_unspeakable() -> None:
    raise ValueError("\ud800" + 10_000_000 * "x")


@fl.task(run_in="process")
def asks_in_vain(status: int, retry_after: str = "") -> None:
    raise http_error(status, retry_after)


@fl.task(run_in="process")
def returns_other(what: str) -> Any:
    return {
        "set": {1},
        "nan": float("nan"),
        "bytes": b"x",
        "class": ValueError,
        "key": {1: "a"},
        "10 MB": "x" * 10_000_000,
        "surrogate": "\ud800",
    }[what]


@fl.task(run_in="process")
def exits() -> None:
    sys.exit(3)


@fl.task(run_in="process")
def dies() -> None:
    os._exit(7)


@fl.task(run_in="process")
def never_returns(ctx: Context) -> None:
    ctx.emit("began")
    while True:
        time.sleep(0.01)


@fl.task(run_in="process")
def returns_late(ctx: Context) -> str:
    """Takes no notice of being stopped."""
    ctx.emit("began")
    while not ctx.cancelled:
        with contextlib.suppress(BaseException):
            time.sleep(0.01)
    return "done after all"


@fl.task(run_in="process")
async def waits_for_ever(ctx: Context) -> None:
    ctx.emit("began")
    await asyncio.Event().wait()


@fl.task(run_in="process")
async def swallows_its_cancellation(ctx: Context) -> str:
    ctx.emit("began")
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return "done after all"
