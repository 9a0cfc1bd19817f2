"""The three priorities, best first."""

from enum import IntEnum


class Priority(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2

    @property
    def word(self) -> str:
        return self.name.lower()
