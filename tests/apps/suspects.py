"""A task that tells where it runs, and stays there until it may go."""

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
