"""What goes between a worker and the store: leases, results, failures, progress, claims."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead import errors
from fairlead.checks import MOST_SECONDS, check_fraction, check_units, check_whole, to_json
from fairlead.log.secrets import redacted
from fairlead.log.tracebacks import readable, shortened
from fairlead.model.task import Task

MOST_TRACEBACK = 4096  # bytes of the traceback of the last failure that are kept with a task
MOST_CHUNKS = 1_000
MOST_CHUNK_BYTES = 64 * 1024
MOST_FRAMES = 2**53  # of one session


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as its holder names it. Without a fence the worker must hold the current lease."""

    id: str
    fence: int | None = None

    def packed(self) -> dict[str, Any]:
        return {"id": self.id} if self.fence is None else {"id": self.id, "fence": str(self.fence)}


@dataclass(frozen=True, slots=True)
class Completed:
    task_id: str
    fence: int | None = None
    result: Any = None
    truncated: bool = False  # returned after the deadline of its tier

    def packed(self) -> dict[str, Any]:
        packed = Grant(self.task_id, self.fence).packed() | {"result": to_json("result", self.result)}
        return packed | {"truncated": True} if self.truncated else packed


@dataclass(frozen=True, slots=True)
class Failed:
    task_id: str
    fence: int | None = None
    code: str = "error"
    message: str = ""
    retriable: bool = True
    retry_after_ms: int = 0
    jitter: int = field(default_factory=lambda: random.randint(0, 1000))  # thousandths of the random half
    crashed: bool = False  # what ran it died, its worker lives: counted as a crash, not as a failure
    traceback: str = ""  # of the handler; the middle of a long one is left out

    def packed(self) -> dict[str, Any]:
        traceback = shortened(redacted(readable(self.traceback)), MOST_TRACEBACK)
        check_whole("retry_after_ms", self.retry_after_ms, MOST_SECONDS * 1000)
        check_whole("jitter", self.jitter, 1000)
        return (
            Grant(self.task_id, self.fence).packed()
            | {
                "code": readable(self.code)[:200],
                "message": readable(self.message)[:4000],
                "retriable": self.retriable,
                "retry_after": self.retry_after_ms,
                "jitter": self.jitter,
                "crashed": self.crashed,
            }
            | ({"traceback": traceback} if traceback else {})
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """What the client of an interactive task sent; `seq` counts from 1."""

    seq: int
    frame: Any


@dataclass(frozen=True, slots=True)
class Progress:
    """What a handler reports while it runs. Without fraction and message the previous ones are kept."""

    task_id: str
    fence: int | None = None
    fraction: float | None = None  # from 0 to 1
    message: str = ""
    chunks: Sequence[Any] = ()  # of output, each any JSON
    first: int | None = None  # the number of the first chunk in this run, from 1: repeated, it is kept once

    def packed(self) -> dict[str, Any]:
        report = Grant(self.task_id, self.fence).packed()
        check_fraction("fraction", self.fraction)
        if not isinstance(self.message, str):
            raise errors.InvalidInput("message", "is not a text")
        if self.fraction is not None or self.message:
            progress = {"fraction": self.fraction, "message": readable(self.message)[:4000]}
            report["progress"] = to_json("progress", progress)
        return report | self._packed_chunks()

    def _packed_chunks(self) -> dict[str, Any]:
        if isinstance(self.chunks, str) or not isinstance(self.chunks, Sequence):
            raise errors.InvalidInput("chunks", "is not a list")
        if len(self.chunks) > MOST_CHUNKS:
            raise errors.InvalidInput("chunks", f"are {len(self.chunks)}, at most {MOST_CHUNKS} at once")
        if self.first is not None:
            check_units("first", self.first)
        if not self.chunks:
            return {}
        packed = [to_json(f"chunks[{i}]", chunk, MOST_CHUNK_BYTES) for i, chunk in enumerate(self.chunks)]
        return {"chunks": packed} | ({} if self.first is None else {"first": self.first})


@dataclass(frozen=True, slots=True)
class Output:
    """A chunk of output. `seq` grows over all runs of the task, `fence` identifies the run."""

    seq: int
    fence: int
    chunk: Any
    event_seq: int = 0  # the number of the event that announced it
    at: int = 0  # ms


@dataclass(frozen=True, slots=True)
class Handed:
    """A task that came with a call: it is the worker's already."""

    task: Task
    now: int  # ms by the store's clock, when its lease began


@dataclass(frozen=True, slots=True)
class Claimed:
    tasks: list[Task] = field(default_factory=list)
    now: int = 0  # ms by the store's clock
    next_alarm: int | None = None  # ms: nothing becomes runnable by time alone before
    draining: bool = False
    again: bool = False  # there may be more that did not fit into this act: ask again at once
