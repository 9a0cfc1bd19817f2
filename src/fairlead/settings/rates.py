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
RateText = Annotated[str, Meta(pattern=RATE.pattern, description=A_RATE)]


def parse_rate(text: str) -> tuple[int, float]:
    """`"60/min"` as (60, 60.0); a ValueError says what a rate looks like."""
    match = RATE.match(text)
    if not match:
        raise ValueError(f"expected {A_RATE}")
    return int(match[1]), float(PERIODS[match[2]])
