"""Requests without a valid key, counted by the address they come from: who tries too often is put off."""

import contextlib
import ipaddress

from fairlead.api.problems import TooManyFailures
from fairlead.clock import monotonic

MOST_ADDRESSES = 10_000
MINUTE = 60.0


class FailedKeys:
    """So many a minute from one address, at once or one after the other; 0: any number."""

    def __init__(self, per_minute: int) -> None:
        self._interval = MINUTE / per_minute if per_minute else 0.0  # in which one is forgotten
        self._until: dict[str, float] = {}  # by address: when all of its failures are forgotten

    def note(self, address: str) -> None:
        """One more; raises TooManyFailures when it is one too many."""
        if not self._interval:
            return
        where, now = neighbourhood(address), monotonic()
        until = max(now, self._until.pop(where, now))
        room = MINUTE - (until - now)
        is_too_many = room < self._interval / 2  # and not: less than one, which it may be by rounding
        self._until[where] = until if is_too_many else until + self._interval  # last in the line again
        if len(self._until) > MOST_ADDRESSES:
            del self._until[next(iter(self._until))]
        if is_too_many:
            raise TooManyFailures(self._interval - room)


def neighbourhood(address: str) -> str:
    """Of IPv6 the first half: who has one such address has all that begin with it."""
    with contextlib.suppress(ValueError):
        known = ipaddress.ip_address(address)
        if known.version == 6 and not known.ipv4_mapped:
            return str(ipaddress.IPv6Network((int(known) >> 64 << 64, 64)))
    return address
