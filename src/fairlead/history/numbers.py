"""The numbers by which rows of all namespaces are ordered."""

PLACES = 50  # bits of the number that a task or a job has in the lists of its namespace
EVENTS = 44  # bits of the number of an event in the outbox of its generation


def place_of(namespace: int, made: int) -> int:
    """Of a task or a job: by namespace, then in the order of their acceptance."""
    return namespace << PLACES | made


def made_of(place: int) -> int:
    return place & (1 << PLACES) - 1


def event_id(generation: int, number: int) -> int:
    return generation << EVENTS | number


def number_of(event: int) -> int:
    return event & (1 << EVENTS) - 1


def padded(entry: str) -> str:
    """The id of an entry of the audit, `1763539200000-0`, as a text that sorts like the two numbers."""
    at, _, number = entry.partition("-")
    return f"{int(at):020}-{int(number):020}"


def unpadded(entry: str) -> str:
    at, _, number = entry.partition("-")
    return f"{int(at)}-{int(number)}"
