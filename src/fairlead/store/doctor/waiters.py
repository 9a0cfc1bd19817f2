"""Checks of acquires that wait: they are in the line of their limit, counted, and get their turn."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from fairlead.store import names
from fairlead.store.doctor.snapshot import Breach, Fields, Members, Snapshot, differences, number, whole
from fairlead.store.doctor.workers import CALL_MS, room_for

OF_CLASS = 2**50  # greater than every tag
MOST_SEARCHED = 128  # of a line, for one that fits


def _waiter(lease: str, record: Fields) -> str:
    return names.waiter(number(record, "seq"), record.get("place", ""), number(record, "units"), lease)


def lines(s: Snapshot) -> Iterator[Breach]:
    """I1: an acquire that waits is in the line of its limit by its rank, and nothing else is."""
    expected: Members = {}
    for lease, record in s.waiters.items():
        rank = "012".find(record.get("place", "")[:1]) * OF_CLASS + number(record, "tag")
        expected[f"waiters:{record.get('limit', '')}", _waiter(lease, record)] = rank
    for key, member, score, have in differences(expected, s.members("waiters")):
        wrong = "is not there" if have is None else "does not wait" if score is None else "has the wrong rank"
        yield Breach("I1", f"{member} of {key} {wrong}", f"{key} {member}")


def counts(s: Snapshot) -> Iterator[Breach]:
    """C1: acquires that wait are counted for their limit and for their place."""
    missing = number(s.meta, "missing_records")
    of_limits = Counter(record.get("limit", "") for record in s.waiters.values())
    for name, limit in s.limits.items():
        counted = number(limit, "waiters")
        if not 0 <= counted - of_limits[name] <= missing:
            sentence = f"limit {name} counts {counted} acquires that wait, there are {of_limits[name]}"
            yield Breach("C1", sentence, f"waiters of {name}")
    of_places = Counter(record.get("place", "") for record in s.waiters.values())
    for place in ("0n", "1n", "2n"):
        counted = number(s.meta, f"waiters_{place}")
        if not 0 <= counted - of_places[place] <= missing:
            sentence = f"meta counts {counted} acquires that wait in {place}, there are {of_places[place]}"
            yield Breach("C1", sentence, f"waiters_{place}")


def turns(s: Snapshot) -> Iterator[Breach]:
    """S4: nobody waits for units that are there, unless a task of a better rank is about to start."""
    if s.torn or 0 < number(s.meta, "alarm") <= s.now:  # time itself has something to do first
        return
    for name, line in s.sets.get("waiters", {}).items():
        limit = s.limits.get(name, {})
        since = limit.get("deferred", "").partition(" ")[0]
        if since and s.now - whole(since) <= CALL_MS:
            continue
        for member in islice(line, MOST_SEARCHED):
            if not (parts := names.cut_waiter(member)):  # `lines` reports it
                continue
            place, units, lease = parts
            if limit and units <= room_for(s, limit, place):
                yield Breach("S4", f"lease {lease} waits for {units} units of {name}, which are free", lease)


def revisits(s: Snapshot) -> Iterator[Breach]:
    """S10: only limits that somebody waits for are looked at again."""
    for name in s.zset("revisits").keys() - s.sets.get("waiters", {}).keys():
        yield Breach("S10", f"revisits has limit {name}, for which nobody waits", f"revisit {name}")
