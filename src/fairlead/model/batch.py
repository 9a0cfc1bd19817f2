"""Many items that are sent together."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead.errors import FairleadError, InvalidInput

T = TypeVar("T")
U = TypeVar("U")
Form = TypeVar("Form")


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

    def answers(self, replies: Iterable[U]) -> "list[U | FairleadError]":
        """In the order of the items."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self.problems]
