"""Checks of the lists of tasks and jobs: every record has one entry, under its number."""

from collections.abc import Iterator

from fairlead.store.doctor.snapshot import Breach, Snapshot, number
from fairlead.store.pages import LISTED_SINCE


def all_are_listed(s: Snapshot) -> Iterator[Breach]:
    """L1: a record and its entry name each other. An entry may outlive its record, until it is swept."""
    if number(s.meta, "schema") < LISTED_SINCE:  # the process that opens it next lists everything
        return
    last = number(s.meta, "made")
    for kind, records in (("task", s.tasks), ("job", s.jobs)):
        listed = s.listed.get(f"{kind}s", {})
        for of, record in records.items():
            made = number(record, "made")
            if not ({"state", "status"} & record.keys()) or (s.torn and made > last):
                continue  # it is no task or job, or newer than the list that was read
            if listed.get(made) != of:
                yield Breach("L1", f"{kind} {of} has number {made}, but {kind}s does not list it there", of)
        for made, of in listed.items():
            if of in records and made > number(records[of], "made"):
                yield Breach("L1", f"{kind}s lists {kind} {of} a second time, under number {made}", of)
        if not s.torn and listed and max(listed) > last:
            newest = max(listed)
            yield Breach("L1", f"{kind}s has number {newest}, but the last one was {last}", f"{kind}s")
