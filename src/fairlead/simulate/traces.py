"""Traces: what arrived when, and how long it ran. In columns, so that a million tasks take little memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.checks import MOST_SECONDS, check_capabilities, check_name
from fairlead.errors import InvalidInput
from fairlead.model.priority import NAMED_PRIORITIES
from fairlead.model.task import check_limits

LAST_ARRIVAL = 253_402_300_800  # seconds; as a date this is the year 10000
MOST_ROWS = 50_000_000
MOST_KINDS = 200_000  #: different needs, types, capabilities, tiers and sizes
MOST_TEXT = 200  # characters of a name


class Row(NamedTuple):
    """A line of a trace, still as text but for the defaults."""

    arrival: str
    duration: str
    task_type: str = "task"
    priority: str = "medium"
    user_id: str = ""
    tenant: str = ""
    limits: str = ""
    capabilities: str = ""
    tier: str = ""
    size_hint: str = ""


class Wants(NamedTuple):
    """What some tasks of a trace have in common, and the first line that has it."""

    task_type: str
    limits: dict[str, int]
    capabilities: frozenset[str]
    tier: str | None
    size_hint: str
    line: int


@dataclass
class Trace:
    """Column by column; times in milliseconds."""

    arrivals: array[int] = field(default_factory=lambda: array("q"))
    durations: array[int] = field(default_factory=lambda: array("q"))
    bases: array[int] = field(default_factory=lambda: array("b"))
    wants: array[int] = field(default_factory=lambda: array("l"))  #: in `kinds`
    owners: array[int] = field(default_factory=lambda: array("l"))  #: in `people`
    rows: array[int] = field(default_factory=lambda: array("q"))  #: of the file, from 0
    kinds: list[Wants] = field(default_factory=list)
    people: list[tuple[str, str]] = field(default_factory=list)  #: tenant and user
    left_out: int = 0  #: rows without a run

    def __len__(self) -> int:
        return len(self.arrivals)


class Collector:
    """Checks rows and adds them to a trace."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.trace = Trace()
        self._kinds: dict[tuple[str, ...], int] = {}
        self._people: dict[tuple[str, str], int] = {}
        self._last = 0

    def collect(self, rows: Iterable[tuple[int, Row | None]]) -> Trace:
        """Of the line of each row, and the row; None: it has not run."""
        for number, (line, row) in enumerate(rows):
            if row is None:
                self.trace.left_out += 1
                continue
            try:
                self._add(line, number, row)
            except InvalidInput as problem:
                raise in_line(self._name, line, str(problem)) from None
        if not self.trace:
            raise InvalidInput(self._name, "has no tasks: it needs at least one row that has run")
        return self.trace

    def _add(self, line: int, number: int, row: Row) -> None:
        trace = self.trace
        arrival = seconds("arrival_seconds", row.arrival, LAST_ARRIVAL)
        if arrival < self._last:
            before = f"{self._last / 1000:.15g} s, the one before"
            raise InvalidInput("arrival_seconds", f"{row.arrival} is less than {before}: sort the trace")
        if len(trace) == MOST_ROWS:
            raise InvalidInput("rows", f"are more than {MOST_ROWS}: cut the trace")
        duration = seconds("duration_seconds", row.duration, MOST_SECONDS)
        base = NAMED_PRIORITIES.get(row.priority)
        if base is None:
            raise InvalidInput("priority", f"{shortened(row.priority)!r} is not one of high, medium, low")
        self._last = arrival
        trace.arrivals.append(arrival)
        trace.durations.append(duration)
        trace.bases.append(base)
        trace.wants.append(self._kind_of(line, row))
        trace.owners.append(self._person_of(row))
        trace.rows.append(number)

    def _kind_of(self, line: int, row: Row) -> int:
        key = (row.task_type, row.limits, row.capabilities, row.tier, row.size_hint)
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self.trace.kinds)
            if number == MOST_KINDS:
                raise InvalidInput(
                    "task_type", f"this is more than {MOST_KINDS} kinds of tasks: cut the trace"
                )
            check_name("task_type", row.task_type)
            capabilities = [name for name in row.capabilities.split(";") if name]
            check_capabilities(capabilities)
            if len(row.size_hint) > MOST_TEXT:
                raise InvalidInput("size_hint", f"has more than {MOST_TEXT} characters")
            limits, tier = _limits(row.limits), row.tier or None
            kind = Wants(row.task_type, limits, frozenset(capabilities), tier, row.size_hint, line)
            self.trace.kinds.append(kind)
        return number

    def _person_of(self, row: Row) -> int:
        key = (row.tenant, row.user_id)
        number = self._people.get(key)
        if number is None:
            number = self._people[key] = len(self.trace.people)
            for name, value in zip(("tenant", "user_id"), key, strict=True):
                if len(value) > MOST_TEXT:
                    raise InvalidInput(name, f"has more than {MOST_TEXT} characters")
            self.trace.people.append(key)
        return number


def seconds(name: str, text: str, most: float) -> int:
    """In milliseconds."""
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(name, f"{shortened(text)!r} is not a number of seconds") from None
    if not math.isfinite(value):
        raise InvalidInput(name, f"{shortened(text)} is not a finite number of seconds")
    if value < 0:
        raise InvalidInput(name, f"{shortened(text)} is negative")
    if value > most:
        raise InvalidInput(name, f"{shortened(text)} is more than {most:.0f} seconds")
    return round(value * 1000)


def shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _limits(text: str) -> dict[str, int]:
    """`a=1;b=2`; a name alone is one unit."""
    limits: dict[str, int] = {}
    for part in filter(None, text.split(";")):
        name, _, units = part.partition("=")
        check_name("limits", name)
        try:
            limits[name] = int(units or "1")
        except ValueError:
            raise InvalidInput("limits", f"{shortened(part)!r} is not like gpu=1") from None
    check_limits(limits)
    return limits


def in_line(name: str, line: int, problem: str) -> InvalidInput:
    return InvalidInput(f"{name}, line {line}", problem)
