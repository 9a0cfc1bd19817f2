"""Tasks that record that they run, and then run for longer than any wait, each in another place."""

import asyncio
import time
from pathlib import Path

from fairlead import Fairlead

fl = Fairlead()
LONG = 600.0


@fl.task
async def loop(path: str) -> None:
    Path(path).touch()
    await asyncio.sleep(LONG)


@fl.task
async def blocked(path: str) -> None:
    Path(path).touch()
    time.sleep(LONG)


@fl.task
def thread(path: str) -> None:
    Path(path).touch()
    time.sleep(LONG)


@fl.task(run_in="process")
def process(path: str) -> None:
    Path(path).touch()
    time.sleep(LONG)
