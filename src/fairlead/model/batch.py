"""Many items that are sent together, or in parts of a bounded size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead.errors import FairleadError, InvalidInput

T = TypeVar("T")
U = TypeVar("U")
Form = TypeVar("Form")


def bounded_parts(
    items: Iterable[T], size: Callable[[T], tuple[int, ...]], most: tuple[int, ...]
) -> Iterator[list[T]]:
    """As few parts as possible, in order: the sizes of the items of a part add up to at most these.

    An item that is larger is a part by itself.
    """
    part: list[T] = []
    room = most
    for item in items:
        needed = size(item)
        if part and any(one > left for one, left in zip(needed, room, strict=True)):
            yield part
            part, room = [], most
        part.append(item)
        room = tuple(left - one for one, left in zip(needed, room, strict=True))
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class Batch(Generic[Form]):
    """Items to send together. One that cannot be sent is answered with its error; the others are sent."""

    accepted: list[Form]
    problems: list[FairleadError | None]  # one per item; None: it is among the accepted

    @classmethod
    def of(cls, items: Iterable[T], form: Callable[[T], Form]) -> "Batch[Form]":
        batch: Batch[Form] = cls([], [])
        for item in items:
            try:
                batch.accepted.append(form(item))
                batch.problems.append(None)
            except InvalidInput as problem:
                batch.problems.append(problem)
        return batch

    def without(self, refused: Sequence[FairleadError | None]) -> "Batch[Form]":
        """Without those of the accepted that have a problem."""
        accepted = [form for form, problem in zip(self.accepted, refused, strict=True) if problem is None]
        waiting = iter(refused)
        return Batch(accepted, [next(waiting) if known is None else known for known in self.problems])

    def answers(self, replies: Iterable[U]) -> "list[U | FairleadError]":
        """In the order of the items."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self.problems]
