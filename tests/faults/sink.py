"""Something outside that handlers write to: it knows fences, and refuses who has an older one."""

import json
import os
import time
from typing import Any, NamedTuple

import redis

#: In one step: the fence only rises, so an older run is refused.
WRITE = """
local newest, fence = tonumber(redis.call("ZSCORE", KEYS[1], ARGV[1]) or 0), tonumber(ARGV[2])
if fence < newest then return 0 end
redis.call("ZADD", KEYS[1], ARGV[2], ARGV[1])
return 1
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
        at = time.monotonic()
        accepted = bool(self._client.eval(WRITE, 1, "sink:newest", task, fence))
        row = Written(task, fence, at, accepted, os.getpid())
        self._client.rpush(f"sink:{task}", json.dumps(row))
        return accepted

    def read(self, task: str) -> list[Written]:
        return [Written(*json.loads(row)) for row in self._client.lrange(f"sink:{task}", 0, -1)]

    def first_run(self, task: str) -> bool:
        """Whether no run but one has written yet."""
        return len({row.fence for row in self.read(task)}) == 1

    def forget(self, task: str) -> None:
        self._client.delete(f"sink:{task}")
        self._client.zrem("sink:newest", task)
