"""When the next forecast is due."""

from collections.abc import Mapping
from typing import TypeVar

EVERY_SECONDS = 2.0
SOONEST_SECONDS = 0.5  # after the one before, when the queue has changed
CHANGED_SHARE = 0.05  # of what waits

Where = TypeVar("Where")


def has_changed(now: Mapping[Where, int], before: Mapping[Where, int]) -> bool:
    """Whether many more or fewer wait in one place or priority."""
    return any(
        abs(count - before.get(where, 0)) > CHANGED_SHARE * before.get(where, 0)
        for where, count in now.items()
    )
