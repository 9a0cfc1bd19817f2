"""Many things at once, sent in acts of a bounded size: the server does nothing else while it runs one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from fairlead import errors
from fairlead.model.task import Submitted
from fairlead.store.access.api_keys import Connected
from fairlead.store.connection import Answer, pack
from fairlead.store.replies import expect_ok, submitted_or_error

#: Of one act. An item that is larger than that alone has an act of its own.
MOST_ITEMS = 200
MOST_LIMITS = 200  # that its tasks name
MOST_BYTES = 1024 * 1024

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Batch:
    """Things to send at once. What cannot be sent is answered with its error, and does not spoil the rest."""

    accepted: list[dict[str, Any]]
    problems: list[errors.FairleadError | None]  # one for each thing asked; None: it is among the accepted

    @classmethod
    def of(cls, things: Iterable[T], form: Callable[[T], dict[str, Any]]) -> "Batch":
        batch = cls([], [])
        for thing in things:
            try:
                batch.accepted.append(form(thing))
                batch.problems.append(None)
            except errors.InvalidInput as problem:
                batch.problems.append(problem)
        return batch

    def parts(self) -> Iterator[list[msgspec.Raw]]:
        return in_parts(self.accepted)

    def answers(self, replies: Iterable[U]) -> "list[U | errors.FairleadError]":
        """In the order in which was asked."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self.problems]


def in_parts(items: Iterable[dict[str, Any]]) -> Iterator[list[msgspec.Raw]]:
    """The items of one act after the other, packed."""
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


async def run_parts(
    store: Connected, items: Iterable[dict[str, Any]], call: Callable[[bytes], tuple[Any, ...]]
) -> list[Answer]:
    """The rows of the answers to all items, which are sent in as many acts as it takes, in one round trip."""
    calls = [(*call(pack(part)), store.clock()) for part in in_parts(items)]
    answers, _ = await store.connection.run_together(*calls)
    return [row for answer in answers for row in expect_ok(answer)["rows"]]


async def submit_parts(
    store: Connected, specs: Iterable[dict[str, Any]]
) -> list[Submitted | errors.FairleadError]:
    """When the server refuses a part (it is full, say), others may have been accepted: the answers tell."""
    parts = list(in_parts(specs))
    calls = [("submit", pack(part), store.clock()) for part in parts]
    answers, _ = await store.connection.run_each(*calls)
    refused = [answer for answer in answers if isinstance(answer, errors.FairleadError)]
    if refused and len(refused) == len(answers):
        raise refused[0]
    replies: list[Submitted | errors.FairleadError] = []
    for part, answer in zip(parts, answers, strict=True):
        if isinstance(answer, errors.FairleadError):
            replies += [answer] * len(part)
        else:
            replies += map(submitted_or_error, expect_ok(answer)["rows"])
    return replies
