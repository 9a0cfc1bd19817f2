"""Another process with a caretaker: `python -m tests.caretakers URL NAMESPACE`, until it is killed."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from pathlib import Path

from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker

ROOT = Path(__file__).parent.parent


async def launch(url: str, namespace: str) -> Process:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.caretakers", url, namespace, env=env
    )


async def _main(url: str, namespace: str) -> None:
    await Caretaker(Store.connect(url, namespace)).run()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
