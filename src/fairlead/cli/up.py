"""`fairlead up`: an engine, its upkeep and, with --demo, sample work to look at."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.demo import run_demo
from fairlead.cli.options import StoreOptions
from fairlead.settings import Settings
from fairlead.store.opening import opened_store
from fairlead.upkeep.caretaker import Caretaker


def up(
    *,
    options: StoreOptions | None = None,
    demo: Annotated[bool, Parameter(help="Submit and run sample tasks, and show what happens.")] = False,
    once: Annotated[bool, Parameter(help="Stop when the sample work is done.")] = False,
) -> None:
    """Start the engine (or connect to the one given) and keep it in order until Ctrl-C."""
    settings, _ = (options or StoreOptions()).read_settings()
    asyncio.run(_up(settings, demo, once))


async def _up(settings: Settings, demo: bool, once: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with opened_store(settings) as store:
        print(f"Fairlead listens at {store.address}, namespace {settings.engine.namespace!r}.", flush=True)
        upkeep = asyncio.create_task(Caretaker(store).run())
        try:
            if demo:
                await _unless(stop, run_demo(store))
            if not once and not stop.is_set():
                print("Press Ctrl-C to stop.", flush=True)
                await stop.wait()
        finally:
            upkeep.cancel()
            await asyncio.wait([upkeep])


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Does the work, but drops it when asked to stop."""
    task = asyncio.create_task(work)
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if stop.is_set():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    else:
        await task
