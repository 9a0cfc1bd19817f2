"""The three priorities, best first."""

from enum import IntEnum

from fairlead.errors import InvalidInput


class Priority(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2

    @property
    def word(self) -> str:
        return self.name.lower()


PRIORITIES = {str(int(priority)): priority for priority in Priority}
NAMED_PRIORITIES = {priority.word: priority for priority in Priority}


def priority_named(name: object) -> Priority:
    if not isinstance(name, str) or name not in NAMED_PRIORITIES:
        raise InvalidInput("priority", f"{name!r} is not one of high, medium, low")
    return NAMED_PRIORITIES[name]
