"""Times as people and programs exchange them: RFC 3339, in UTC, with milliseconds."""

from datetime import UTC, datetime, timedelta
from typing import overload

from fairlead.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@overload
def time_text(ms: int) -> str: ...
@overload
def time_text(ms: int | None) -> str | None: ...


def time_text(ms: int | None) -> str | None:
    """`2026-01-31T12:00:00.000Z`; computed in whole numbers, because a float would lose milliseconds."""
    if ms is None:
        return None
    return (EPOCH + ms * MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(field: str, text: str) -> int:
    """The ms of an RFC 3339 time. It must have an offset, because a bare time could mean any zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        return (moment - EPOCH) // MILLISECOND
    except (ValueError, OverflowError):
        example = "2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00"
        raise InvalidInput(field, f"{text!r} is not a time with its offset, such as {example}") from None
