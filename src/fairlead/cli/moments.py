"""Times on the command line: an RFC 3339 time, or how long ago."""

import re

from fairlead.clock import now_ms
from fairlead.errors import InvalidInput
from fairlead.settings.rates import PERIODS
from fairlead.times import read_time

DURATION = re.compile(r"([0-9]{1,9})([a-z]+)")


def read_duration(field: str, text: str) -> int:
    """`90d` in seconds."""
    match = DURATION.fullmatch(text)
    if not match or match[2] not in PERIODS:
        raise InvalidInput(field, f"{text!r} is not a time such as 90d, 12h, 30min or 45s")
    return int(match[1]) * PERIODS[match[2]]


def read_moment(field: str, text: str | None) -> int | None:
    """`24h` ago, or an RFC 3339 time, in ms."""
    if text is None:
        return None
    if DURATION.fullmatch(text):
        return max(0, now_ms() - read_duration(field, text) * 1000)
    return read_time(field, text)
