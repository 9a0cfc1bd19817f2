"""Counts requests without a valid key by address, and refuses an address that sends too many."""

import contextlib
import ipaddress

from fairlead.api.problems import TooManyFailures
from fairlead.clock import monotonic

MOST_ADDRESSES = 10_000  # whose failures are counted
MINUTE = 60.0


class FailedKeys:
    """Allows `per_minute` failures from one address, at once or one after the other; 0: any number."""

    def __init__(self, per_minute: int) -> None:
        self._interval = MINUTE / per_minute if per_minute else 0.0  # in which one is forgotten
        self._until: dict[str, float] = {}  # by address: when all of its failures are forgotten

    def note(self, address: str) -> None:
        """Counts one failure; raises TooManyFailures when it is one too many."""
        if not self._interval:
            return
        where, now = neighbourhood(address), monotonic()
        until = max(now, self._until.pop(where, now))
        room = MINUTE - (until - now)
        is_too_many = room < self._interval * 0.999  # rounding may take a little of it
        self._until[where] = until if is_too_many else until + self._interval  # the latest is the last
        if len(self._until) > MOST_ADDRESSES:
            del self._until[next(iter(self._until))]
        if is_too_many:
            raise TooManyFailures(retry_after=self._interval - room)


def neighbourhood(address: str) -> str:
    """The first half of an IPv6 address: a client with one such address has all of that network."""
    with contextlib.suppress(ValueError):
        known = ipaddress.ip_address(address)
        if known.version == 6 and not known.ipv4_mapped:
            return str(ipaddress.IPv6Network((int(known) >> 64 << 64, 64)))
    return address
