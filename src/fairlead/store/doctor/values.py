"""Checks of single values: text is UTF-8, and what acts count with is a number."""

import math
import re
from collections.abc import Callable, Iterator
from functools import cache

from fairlead.checks import is_text
from fairlead.store.doctor.snapshot import Breach, Snapshot, join
from fairlead.store.membership import unreadable

#: Fields that acts read as numbers, by key; one that ends with `*` is the beginning of several.
NUMBERS: dict[str, tuple[str, ...]] = {
    "meta": (
        *("schema", "seq", "fence", "alarm", "audited", "rated", "sealed_at", "events", "events_gone"),
        *("finished_count", "finished_bytes", "delayed", "wide_sub_queues", "idle_workers", "jobs_open"),
        *("missing_records", "overlap_changes", "buried", "buried_at", "queued_*", "waiters_*", "virtual_*"),
        *("declared_seq", "audience", "audience_changes", "pace", "upkeep_since", "made", "swept_*"),
        *("capacity", "sessions", "recorded"),
    ),
    "task": (
        *("priority", "created", "finished", "tag", "seq", "arrival", "run_at", "wait_until", "fence"),
        *("started", "lease_until", "stopping", "reported", "made", "waited"),
    ),
    "limit": (
        *("limit", "used", "waiting", "delayed", "waiters", "sub_queues", "tat", "burst", "interval"),
        *("hold_units", "redefined", "kept0", "kept1", "kept2", "counted"),
    ),
    "lease": ("units", "until", "since", "asked", "fence", "seq", "tag", "wait_until"),
    "worker": ("capacity", "reserve", "seen", "registered", "called", "lost_runs"),
    "job": ("open", "step", "total", "created", "finished", "made"),
    "key": ("created", "expires", "revoked", "last_used", "lifetime", "interval", "burst", "tat"),
    "profiles": ("n:*",),
    **{
        name: ("*",)
        for name in (
            *("crons", "waiting", "idle", "kinds", "pace", "recent", "recentof", "capacity", "relief"),
            *("holders", "metrics", "acquisitions", "served"),
        )
    },
}
#: Fields that are packed, or are the content of users.
NOT_TEXT: dict[str, tuple[str, ...]] = {
    "profiles": ("j:*",),
    "job": ("*",),
    "pipelines": ("*",),
    "learnt": ("*",),
    "curves": ("*",),
    "forecast": ("*",),
}
REMEDY = "correct it, or restore the data from a backup"
ACCEPT = "restore the data from a backup, or accept it as it is: `fairlead open --restored`"


def readable(s: Snapshot) -> Iterator[Breach]:
    """K6: every value can be read as what it is."""
    for key, problem in s.unreadable.items():
        yield Breach("K6", f"key {key}: {problem}: {REMEDY}", f"value {key}")
    for key in s.present:
        if not is_text(key):
            yield Breach("K6", f"key {key}: its name is not UTF-8: delete it", f"name {key}")
    for field, value in unreadable(s.meta).items():
        sentence = f"key meta: field {field} is {value!r}, which is not a whole number: {ACCEPT}"
        yield Breach("K6", sentence, f"value meta {field}")
    yield from _fields(s)
    yield from _members(s)


def _fields(s: Snapshot) -> Iterator[Breach]:
    for name, of, fields in ((name, of, f) for name, keys in s.hashes.items() for of, f in keys.items()):
        key = join(name, of)
        is_count, is_content = _matcher(NUMBERS.get(name, ())), _matcher(NOT_TEXT.get(name, ()))
        for field, value in fields.items():
            if is_count(field) and not _is_number(value):
                sentence = f"key {key}: field {field} is {value!r}, which is not a number: {REMEDY}"
            elif not is_text(field) or not (is_text(value) or is_content(field)):
                sentence = f"key {key}: field {field} is {value!r}, which is not UTF-8: {REMEDY}"
            else:
                continue
            yield Breach("K6", sentence, f"value {key} {field}")


def _members(s: Snapshot) -> Iterator[Breach]:
    """Of sorted sets; and strings."""
    for name, sets in s.sets.items():
        for of, members in sets.items():
            for member in members:
                if not is_text(member):
                    sentence = f"key {join(name, of)}: member {member!r} is not UTF-8: {REMEDY}"
                    yield Breach("K6", sentence, f"value {join(name, of)} {member}")
    for name, strings in s.strings.items():
        for of, value in strings.items():
            if not is_text(value):
                sentence = f"key {join(name, of)}: its value {value!r} is not UTF-8: {REMEDY}"
                yield Breach("K6", sentence, f"value {join(name, of)}")


@cache
def _matcher(names: tuple[str, ...]) -> Callable[[str], object]:
    """One expression, because every field of a namespace is compared."""
    patterns = [re.escape(name).replace(r"\*", ".*") for name in names] or ["(?!)"]  # matches nothing
    return re.compile("|".join(patterns), re.DOTALL).fullmatch


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
