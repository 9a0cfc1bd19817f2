"""An app whose first process adopts an embedded server just as its owner leaves; importing it does that."""

import asyncio
from pathlib import Path

import pytest

from fairlead import Fairlead
from fairlead.store.engine.engine import Engine, open_engine

ADOPTED = Path("adopted")  # where it runs; then its owner is to leave

fl = Fairlead()


@fl.task
async def echo(text: str) -> str:
    return text


async def open_as_the_owner_leaves(data: Path, *, durability: str) -> Engine:
    engine = await open_engine(data, durability=durability)
    if not ADOPTED.exists():
        ADOPTED.touch()
        while engine.socket.exists():
            await asyncio.sleep(0.01)
    return engine


pytest.MonkeyPatch().setattr("fairlead.store.opening.open_engine", open_as_the_owner_leaves)
