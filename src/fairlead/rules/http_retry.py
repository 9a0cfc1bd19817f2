"""Which responses of an HTTP server can be retried, and when."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

RETRIABLE_STATUS = frozenset({408, 425, 429, 502, 503, 504})


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """The delay in `Retry-After`: seconds, or a date by the clock of the server. 0 if missing or invalid."""
    lowered = {name.lower(): value for name, value in headers.items()}
    asked = lowered.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            until, since = (parsedate_to_datetime(date) for date in (asked, lowered.get("date", "")))
            seconds = (until - since).total_seconds()
        except (TypeError, ValueError):  # no date, or one of them without a time zone
            return 0.0
    return 0.0 if math.isnan(seconds) else max(0.0, seconds)
