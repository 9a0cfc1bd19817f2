"""Everything that estimates are made from, learnt from the events of the outbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from fairlead.estimates.arrivals import Arrival, Arrivals
from fairlead.estimates.calibration import Calibration, Fit
from fairlead.estimates.durations import Durations, RunKind

KIND = "kind:"  # begins the fields of the durations
FITS, POSITION, QUALITY = "fits", "position", "quality"
GIVEN = 6  # values of an estimate that can be learnt from (lua/lib/forecasts.lua)

#: An event as the outbox has it: the act, when, and its facts.
Seen = tuple[str, int, Mapping[str, Any]]


class Knowledge:
    def __init__(self) -> None:
        self.durations = Durations()
        self.calibration = Calibration()
        self.arrivals = Arrivals()
        self.position = "0-0"  #: of the last entry of the outbox that was learnt from

    def learn(self, events: Iterable[Seen], position: str) -> None:
        for act, at, detail in events:
            self._learn(act, at, detail)
        self.position = position

    def _learn(self, act: str, at: int, detail: Mapping[str, Any]) -> None:
        if "ran" in detail and "type" in detail:
            self.durations.learn(_kind_of(detail), detail["ran"], at)
        if act == "submit":
            self.arrivals.learn(_arrival(at, detail))
        given: Sequence[int] = detail.get("estimate", ())
        if len(given) == GIVEN and at > given[2]:  # else it was started by its submit, and did not wait
            p50, p90, since, raw_p50, raw_p90, priority = given
            self.calibration.learn(Fit(priority, at, at - since, p50, p90, raw_p50, raw_p90))

    def packed_changes(self, now: int) -> dict[str, str]:
        """By field; what is empty is forgotten."""
        quality = asdict(self.calibration.quality(now))
        known = {name: value for name, value in quality.items() if value is not None}
        fields = {FITS: self.calibration.packed(), POSITION: self.position, QUALITY: known}
        durations = self.durations.packed_changes().items()
        kinds = {KIND + kind: _text(value) if value else "" for kind, value in durations}
        return {name: _text(value) for name, value in fields.items()} | kinds

    @classmethod
    def unpacked(cls, fields: Mapping[str, str]) -> Knowledge:
        knowledge = cls()
        values = {name: msgspec.json.decode(text) for name, text in fields.items()}
        kinds = {name.removeprefix(KIND): value for name, value in values.items() if name.startswith(KIND)}
        knowledge.durations = Durations.unpacked(kinds)
        if FITS in values:
            knowledge.calibration = Calibration.unpacked(values[FITS])
        knowledge.position = values.get(POSITION, knowledge.position)
        return knowledge


def _kind_of(detail: Mapping[str, Any]) -> RunKind:
    return RunKind(detail["type"], *(detail.get(name) or "" for name in ("tier", "size", "needs", "fair")))


def _arrival(at: int, detail: Mapping[str, Any]) -> Arrival:
    return Arrival(
        at,
        _kind_of(detail),
        detail.get("capabilities") or "",
        int(detail["priority"]),
        bool(detail.get("elastic")),
    )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
