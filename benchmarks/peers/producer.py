"""The submitting side of a Python queue: answers each request, a line of JSON, with when it began and ended.

`python -m benchmarks.peers.producer ADAPTER`, in the environment of that queue: standard library only.
"""

import asyncio
import contextlib
import importlib
import json
import sys
import time
from types import ModuleType
from typing import Any


async def serve(adapter: ModuleType) -> None:
    async with getattr(adapter, "connection", contextlib.nullcontext()):
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await submit(adapter, **json.loads(line))), flush=True)


async def submit(
    adapter: ModuleType, first: int, count: int, bulk: bool, seconds: float, priority: str | None
) -> dict[str, Any]:
    numbers = range(first, first + count)
    began = time.monotonic_ns()
    if bulk:
        await adapter.submit_many(numbers, seconds, priority)
    else:
        for number in numbers:
            await adapter.submit(number, seconds, priority)
    return {"began": began, "ended": time.monotonic_ns()}


if __name__ == "__main__":
    module = importlib.import_module(f"benchmarks.peers.adapters.{sys.argv[1]}")
    asyncio.run(serve(module))  # on uvloop where the adapter has chosen it
