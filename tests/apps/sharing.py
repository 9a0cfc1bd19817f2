"""Handlers that write down when they run, for workers of several namespaces."""

import asyncio
from pathlib import Path

from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def step(record: str, label: str) -> None:
    with Path(record).open("a") as out:
        out.write(f"+ {label}\n")
    await asyncio.sleep(0.005)
    with Path(record).open("a") as out:
        out.write(f"- {label}\n")


@fl.task
async def follow() -> str:
    return (await fl.submit("nobody")).task_id


@fl.task
def follow_in_thread() -> str:
    return asyncio.run(_follow())


async def _follow() -> str:
    return fl.backend.settings.engine.namespace


@fl.task
async def until(path: str) -> None:
    while not Path(path).exists():
        await asyncio.sleep(0.02)
