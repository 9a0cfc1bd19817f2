"""Rates as they are written: `60/min`."""

import re
from typing import Annotated

from msgspec import Meta

PERIODS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86_400,
    "day": 86_400,
}
A_RATE = 'a rate such as "60/min", "10/s" or "1000/h"'
RATE = re.compile(rf"^\s*0*([1-9][0-9]{{0,99}})\s*/\s*({'|'.join(PERIODS)})\s*\Z")
SLOW = re.compile(r"1 per ([0-9.e+-]+) s")
RateText = Annotated[str, Meta(pattern=RATE.pattern, description=A_RATE)]


def parse_rate(text: str) -> tuple[int, float]:
    """`"60/min"` as (60, 60.0); a ValueError says what a rate looks like."""
    match = RATE.match(text)
    if not match:
        raise ValueError(f"expected {A_RATE}")
    return int(match[1]), float(PERIODS[match[2]])


def default_burst(count: int) -> int:
    """A tenth of the rate, at least 1. In any period up to `count + burst - 1` units are taken: with a larger
    burst a rate of 10/s would let almost 20 through in its first second."""
    return max(1, count // 10)


def rate_text(interval_us: int) -> str:
    """The shortest unit in which this interval is a whole number of times: 1000000 is `1/s`, as is 60/min."""
    for unit in ("s", "min", "h", "day"):
        period_us = PERIODS[unit] * 1_000_000
        count = period_us // interval_us
        if count and period_us // count == interval_us:
            return f"{count}/{unit}"
    return f"1 per {interval_us / 1_000_000:g} s"


def read_rate(text: str) -> int:
    """The interval of a `rate_text` in microseconds."""
    if match := SLOW.fullmatch(text):
        return round(float(match[1]) * 1_000_000)
    count, period = parse_rate(text)
    return int(period * 1_000_000) // count
