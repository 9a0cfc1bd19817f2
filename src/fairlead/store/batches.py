"""Many items at once, sent in acts of a bounded size: the server does nothing else while it runs one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from fairlead import errors
from fairlead.store.connection import pack

#: In one act. An item that is larger than this is sent in an act by itself.
MOST_ITEMS = 200
MOST_LIMITS = 200  # that its tasks name
MOST_BYTES = 1024 * 1024
CHUNK_BYTES = MOST_BYTES // 2  # of output; its packing takes some too

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Batch:
    """Items to send together. One that cannot be sent is answered with its error; the others are sent."""

    accepted: list[dict[str, Any]]
    problems: list[errors.FairleadError | None]  # one per item; None: it is among the accepted

    @classmethod
    def of(cls, items: Iterable[T], form: Callable[[T], dict[str, Any]]) -> "Batch":
        batch = cls([], [])
        for item in items:
            try:
                batch.accepted.append(form(item))
                batch.problems.append(None)
            except errors.InvalidInput as problem:
                batch.problems.append(problem)
        return batch

    def answers(self, replies: Iterable[U]) -> "list[U | errors.FairleadError]":
        """In the order of the items."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self.problems]


def in_parts(items: Iterable[dict[str, Any]]) -> Iterator[list[msgspec.Raw]]:
    """The packed items of one act after the other."""
    part: list[msgspec.Raw] = []
    room = MOST_ITEMS, MOST_LIMITS, MOST_BYTES
    for item in items:
        packed = msgspec.Raw(pack(item))
        size = 1, item.get("limits", "").count("="), len(memoryview(packed))
        if part and any(needed > left for needed, left in zip(size, room, strict=True)):
            yield part
            part, room = [], (MOST_ITEMS, MOST_LIMITS, MOST_BYTES)
        part.append(packed)
        room = room[0] - size[0], room[1] - size[1], room[2] - size[2]
    if part:
        yield part


def in_pieces(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A report of progress, as several if it has more output than fits into an act."""
    if "chunks" not in report:
        return [report]
    pieces: list[dict[str, Any]] = []
    room = 0
    for i, chunk in enumerate(report["chunks"]):
        room -= (size := len(chunk.encode()))
        if not pieces or room < 0:
            first = {"first": report["first"] + i} if "first" in report else {}
            pieces.append((report if not pieces else _holder(report)) | {"chunks": []} | first)
            room = CHUNK_BYTES - size
        pieces[-1]["chunks"].append(chunk)
    return pieces


def _holder(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ("id", "fence") if name in report}
