"""Honest clients of the same server: how long each of their requests takes while somebody attacks it."""

import asyncio
import json
import time
from dataclasses import dataclass, field

from tests.faults.hostile.lines import Line, Target

CLIENTS = 4
PAUSE = 0.02  # seconds between two requests of a client
PATIENCE = 10.0  # seconds; a request that took longer counts as unanswered
TASKS = "/api/v1/tasks"
BODY = json.dumps({"task_type": "honest"}).encode()


@dataclass
class Others:
    """Each submits a task, reads it and cancels it, over a new connection each time."""

    host: str
    port: int
    key: str
    took: list[float] = field(default_factory=list)  # seconds; PATIENCE for those that failed
    failed: list[str] = field(default_factory=list)

    async def until(self, over: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._ask(over))

    async def _ask(self, over: asyncio.Event) -> None:
        target = Target(self.host, self.port, self.key, float("inf"))
        while not over.is_set():
            try:
                async with target.line() as line:
                    task = json.loads(await self._timed(line, "POST", TASKS))["task_id"]
                    await asyncio.sleep(PAUSE)
                    await self._timed(line, "GET", f"{TASKS}/{task}")
                    await asyncio.sleep(PAUSE)
                    await self._timed(line, "DELETE", f"{TASKS}/{task}")
            except (OSError, asyncio.IncompleteReadError, TimeoutError, KeyError) as problem:
                self.failed.append(repr(problem))
                self.took.append(PATIENCE)

    async def _timed(self, line: Line, method: str, path: str) -> bytes:
        began = time.monotonic()
        body = BODY if method == "POST" else b""
        headers = ("Content-Type: application/json", f"Content-Length: {len(body)}") if body else ()
        async with asyncio.timeout(PATIENCE):
            await line.send(line.target.head(method, path, *headers) + body)
            answer = await line.answer()
        self.took.append(time.monotonic() - began)
        return answer

    def figures(self) -> dict[str, int]:
        print(*self.failed[:5], sep="\n")
        ordered = sorted(self.took)
        return {
            "requests": len(ordered),
            "failed": len(self.failed),
            "p50_ms": round(ordered[len(ordered) // 2] * 1000),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000),
            "max_ms": round(ordered[-1] * 1000),
        }
