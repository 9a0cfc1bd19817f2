"""Times as people and programs exchange them: RFC 3339, in UTC, with milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from typing import overload

from fairlead.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")  # as `time_text` writes it
HALF_A_DAY, SOON = 12 * 3_600 * 1000, 120 * 1000  # ms
UNITS = {"d": 86_400, "h": 3_600, "min": 60}


@overload
def time_text(ms: int) -> str: ...
@overload
def time_text(ms: int | None) -> str | None: ...


def time_text(ms: int | None) -> str | None:
    """`2026-01-31T12:00:00.000Z`; computed in whole numbers, because a float would lose milliseconds."""
    if ms is None:
        return None
    return (EPOCH + ms * MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span_text(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2 h`: as precise as people need it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    unit, size = next(((unit, size) for unit, size in UNITS.items() if seconds >= 2 * size), ("s", 1))
    return f"{seconds / size:.0f} {unit}"


def clock_text(ms: int, now: int, *, about: bool = False) -> str:
    """`12:00:00 UTC` if that is within half a day, else as `time_text`.

    `about`: later than in two minutes it is rounded to ten seconds.
    """
    if about and ms - now > SOON:
        ms = round(ms, -4)
    text = time_text(ms)
    return f"{text[11:19]} UTC" if abs(ms - now) < HALF_A_DAY else text


def is_time_text(text: str) -> bool:
    return TIME_TEXT.fullmatch(text) is not None


def age_text(ms: int) -> str:
    """`2 min`; what is still to come is `in 2 min`. At least two of a unit: `119 min`, not `1 h`."""
    seconds = abs(ms) // 1000
    unit, size = next(((unit, size) for unit, size in UNITS.items() if seconds >= 2 * size), ("s", 1))
    # a key for 90 days has 90 of them a moment later, and a task of just now is not in the future
    return f"in {-(ms // (1000 * size))} {unit}" if ms <= -1000 else f"{seconds // size} {unit}"


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
