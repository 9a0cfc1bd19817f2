"""Processes for handlers, and runs that are cancelled while their process starts."""

import asyncio
import gc
import os
from pathlib import Path

from fairlead.worker.processes import Processes


def started() -> list[int]:
    """The processes for handlers that this one has started and not seen end."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    module = b"\0fairlead.app.handler_process\0"
    return [int(one) for one in found if module in Path(f"/proc/{one}/cmdline").read_bytes()]


async def test_a_run_cancelled_while_its_process_starts_leaves_neither_process_nor_socket() -> None:
    """Cancelled after every number of rounds of the loop, until the process was there before."""
    processes = Processes()
    ready = asyncio.Event()

    async def borrow() -> None:
        async with processes.borrowed():
            ready.set()
            await asyncio.Event().wait()

    cancelled = 0
    while not ready.is_set():
        borrowing = asyncio.create_task(borrow())
        for _ in range(cancelled + 1):
            await asyncio.sleep(0)
        if not ready.is_set():
            borrowing.cancel()
            await asyncio.wait({borrowing})
            assert borrowing.cancelled()
            assert started() == [], f"cancelled after {cancelled + 1} rounds"
            cancelled += 1
    assert cancelled > 2, "it was cancelled while it waited for something"
    borrowing.cancel()
    await asyncio.wait({borrowing})
    await processes.close()
    assert started() == []
    del borrowing
    gc.collect()  # a socket that was left open warns now
