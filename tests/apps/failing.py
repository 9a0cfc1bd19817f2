"""Handlers that fail, each in its own way, wherever handlers run."""

import asyncio
import contextlib
import logging
import os

from fairlead import Context, Fairlead, PermanentError

fl = Fairlead()


@fl.task
async def fails_in_loop(prompt: str) -> None:
    raise ValueError("out of paint")


@fl.task(run_in="thread")
def fails_in_thread(prompt: str) -> None:
    raise ValueError("out of paint")


@fl.task(run_in="process")
def fails_in_process(prompt: str) -> None:
    raise ValueError("out of paint")


@fl.task(run_in="process")
async def fails_in_loop_of_process(prompt: str) -> None:
    raise ValueError("out of paint")


@fl.task
async def fails_for_good(prompt: str) -> None:
    raise PermanentError("no such colour")


@fl.task
async def takes_too_long() -> None:
    await asyncio.sleep(60)


@fl.task(run_in="process")
def kills_its_process() -> None:
    os.abort()


@fl.task
async def kills_its_worker() -> None:
    os._exit(7)


@fl.task
async def quotes_its_parameters(prompt: str) -> None:
    raise ValueError(f"cannot paint {prompt!r}")


@fl.task
async def stubborn() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@fl.task
async def chats(ctx: Context) -> None:
    ctx.log.info("mixing colours")
    ctx.log.debug("a drop of blue")
    logging.getLogger("some.library").debug("a detail")


@fl.task(run_in="process")
def chats_in_process(ctx: Context) -> None:
    ctx.log.info("mixing colours")
    logging.getLogger("some.library").warning("low on blue")


@fl.task
async def returns_its_parameters(ctx: Context, prompt: str) -> str:
    ctx.progress(0.5, prompt)
    ctx.emit({"prompt": prompt})
    ctx.log.debug("a drop of blue")
    return prompt
