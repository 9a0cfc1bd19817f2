"""Other processes that tick: `python -m tests.tickers URL NAMESPACE STARTED` does until it is killed."""

import asyncio
import os
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path

from fairlead.cron import Cron
from fairlead.settings import Settings
from fairlead.store.connection import Connection
from fairlead.store.store import Store
from fairlead.worker.ticker import Ticker

ROOT = Path(__file__).parent.parent
CRON = Cron(name="c", expression="* * * * *", task_type="echo", missed="all", tick_parameter="at")


class FastClock:
    """A time of the store in which a minute takes 50 ms, the same in all processes of this machine."""

    def __init__(self, started: float | None = None) -> None:
        self.started = time.monotonic() if started is None else started

    def __call__(self) -> str:
        return str(1_000_000_000 + round((time.monotonic() - self.started) * 1_200_000))


async def launch(url: str, namespace: str, clock: FastClock) -> Process:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.tickers", url, namespace, repr(clock.started), env=env
    )


async def _main(url: str, namespace: str, started: str) -> None:
    connection = Connection.to(url, namespace)
    await Ticker(Store(connection, Settings(), FastClock(float(started))), [CRON], longest_sleep=0.01).run()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
