"""A task that records where it runs, and runs until it is released."""

import asyncio
import os
from pathlib import Path

from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def stay(folder: str, number: int) -> int:
    (Path(folder) / f"{os.getpid()}-{number}").touch()
    while not (Path(folder) / "go").exists():
        await asyncio.sleep(0.02)
    return os.getpid()
