"""A measured value with its spread, and the result of a scenario."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of one case, with a value per repetition."""

    case: str
    measure: str
    unit: str
    values: Sequence[float]
    better: Literal["less", "more"] = "less"

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return min(self.values) if self.better == "less" else max(self.values)

    @property
    def spread(self) -> float:
        """The middle half of the values (p25 to p75) as a part of the median."""
        if len(self.values) < 2 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4)
        return (high - low) / self.median

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "measure": self.measure,
            "unit": self.unit,
            "better": self.better,
            "median": significant(self.median),
            "best": significant(self.best),
            "spread": significant(self.spread, 2),
            "repeated": len(self.values),
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two figures of one run, and the target."""

    name: str
    medians: float
    bests: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must be so in a case, however fast or slow it is."""

    case: str
    name: str
    held: bool
    detail: str = ""


@dataclass
class Outcome:
    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # case -> the error that ended it
    servers: dict[str, Mapping[str, str]] = field(default_factory=dict)  # label -> version and settings
    notes: list[str] = field(default_factory=list)

    def find(self, case: str, measure: str) -> Figure:
        return next(f for f in self.figures if (f.case, f.measure) == (case, measure))

    def compare(self, name: str, above: tuple[str, str], below: tuple[str, str], target: str = "") -> None:
        one, other = self.find(*above), self.find(*below)
        medians, bests = one.median / other.median, one.best / other.best
        self.ratios.append(Ratio(name, significant(medians), significant(bests), target))


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def significant(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")
