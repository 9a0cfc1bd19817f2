"""Checks of API keys and of the audit: each key is in the list, the chain is whole."""

from collections.abc import Iterator

from fairlead.checks import LATEST
from fairlead.store.access.audit import problems
from fairlead.store.doctor.breach import Breach
from fairlead.store.doctor.snapshot import Fields, Snapshot, number


def keys_are_listed(s: Snapshot) -> Iterator[Breach]:
    """K4: the list of API keys and their records know the same keys and ends."""
    listed, records = s.zset("keys"), s.hashes.get("key", {})
    for key, record in records.items():
        end, right = listed.get(key), _end(record)
        if end != right:
            at = "does not have it" if end is None else f"has it with {end:.0f}"
            yield Breach("K4", f"API key {key} ends at {right}, but the list of keys {at}", key)
    for key in listed.keys() - records.keys():
        yield Breach("K4", f"the list of keys has {key}, which has no record", key)


def _end(record: Fields) -> int:
    return min(number(record, name) if name in record else LATEST for name in ("expires", "revoked"))


def audit_is_a_chain(s: Snapshot) -> Iterator[Breach]:
    """A1: every entry of the audit names the one before it, and all that were written are there."""
    written = number(s.meta, "audited")
    for problem in problems(s.audit, written, written):
        yield Breach("A1", f"audit: {problem}", problem)
