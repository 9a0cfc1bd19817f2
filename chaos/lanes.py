"""The same fault over and over, in several places at once."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_lanes(
    lanes: int,
    size: int,
    seed: int,
    lane: Callable[[random.Random, int, Callable[[T], None]], Coroutine[Any, Any, None]],
) -> list[T]:
    """`size` rounds, shared by this number of lanes, each of which keeps its results. One error ends all."""
    found: list[T] = []

    def note(one: T) -> None:
        found.append(one)
        if len(found) % 10 == 0:
            print(f"{len(found)} of {size}", flush=True)

    async with asyncio.TaskGroup() as group:
        for number in range(lanes):
            rounds = size // lanes + (number < size % lanes)
            group.create_task(lane(random.Random(seed * 1000 + number), rounds, note))
    return found
