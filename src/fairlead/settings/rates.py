"""Rates as they are written: `60/min`."""

import re

RATE = re.compile(r"\s*([0-9]+)\s*/\s*([a-z]+)\s*")
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


def parse_rate(text: str) -> tuple[int, float]:
    """`"60/min"` as (60, 60.0); a ValueError says what a rate looks like."""
    match = RATE.fullmatch(text)
    if not match or match[2] not in PERIODS or int(match[1]) < 1:
        raise ValueError(f"expected {A_RATE}")
    return int(match[1]), float(PERIODS[match[2]])
