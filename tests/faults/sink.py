"""An external system that handlers write to: it knows fences, and refuses writers with an older one."""

import json
import os
import time
from typing import Any, NamedTuple

import redis

#: The fence only rises, so an older run is refused. The write is recorded in the same step: a process
#: that is stopped after it would note an accepted write behind those of a newer run.
WRITE = """
local task, fence, at, pid = unpack(ARGV)
local newest = tonumber(redis.call("ZSCORE", KEYS[1], task) or 0)
local accepted = tonumber(fence) >= newest
if accepted then redis.call("ZADD", KEYS[1], fence, task) end
redis.call("RPUSH", KEYS[2], string.format('["%s",%s,%s,%s,%s]', task, fence, at, tostring(accepted), pid))
return accepted and 1 or 0
"""


class Written(NamedTuple):
    task: str
    fence: int
    at: float  # seconds of the machine's monotonic clock
    accepted: bool
    pid: int


class Sink:
    """On any server that is not behind the fault: `Sink(url)`, for one set of tasks at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: Any = redis.Redis.from_url(url)

    def __enter__(self) -> "Sink":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def write(self, task: str, fence: int) -> bool:
        known = (task, fence, repr(time.monotonic()), os.getpid())
        return bool(self._client.eval(WRITE, 2, "sink:newest", f"sink:{task}", *known))

    def read(self, task: str) -> list[Written]:
        return [Written(*json.loads(row)) for row in self._client.lrange(f"sink:{task}", 0, -1)]

    def first_run(self, task: str) -> bool:
        """Whether only one run has written so far."""
        return len({row.fence for row in self.read(task)}) == 1

    def forget(self, task: str) -> None:
        self._client.delete(f"sink:{task}")
        self._client.zrem("sink:newest", task)
