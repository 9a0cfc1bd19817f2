"""The text format of Prometheus, version 0.0.4."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fairlead.model.metrics import Histogram, Labels

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "fairlead_"
MOST_KNOWN = 4096  # labels with their values
ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Value = int | float
Lines = Iterable[str]  # of a family; its values are given by the values of their labels


def gauge(name: str, about: str, value: Value) -> Lines:
    return _family(name, "gauge", about, [f"{PREFIX}{name} {value}"])


def gauges(name: str, about: str, values: Mapping[Any, Value], *labels: str) -> Lines:
    return _family(name, "gauge", about, _samples(name, values, labels))


def counter(name: str, about: str, values: Mapping[Any, Value], *labels: str) -> Lines:
    """Its name ends with `_total`."""
    return _family(name, "counter", about, _samples(name, values, labels))


def histogram(
    name: str, about: str, bounds: Sequence[float], found: Mapping[Labels, Histogram], *labels: str
) -> Lines:
    ends = [f'le="{bound}"}} ' for bound in (*bounds, "+Inf")]
    lines: list[str] = []
    for values, one in found.items():
        pairs, counts = _pairs(labels, values), one.up_to(bounds)
        begin = f"{PREFIX}{name}_bucket{{{pairs}{',' if pairs else ''}"
        lines += [f"{begin}{end}{count}" for end, count in zip(ends, counts, strict=True)]
        lines.append(f"{PREFIX}{name}_sum{_braces(pairs)} {one.sum_ms / 1000}")
        lines.append(f"{PREFIX}{name}_count{_braces(pairs)} {counts[-1]}")
    return _family(name, "histogram", about, lines)


def page(families: Iterable[Lines]) -> bytes:
    return "\n".join([*(line for lines in families for line in lines), ""]).encode()


def _family(name: str, kind: str, about: str, samples: Lines) -> Lines:
    return [f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} {kind}", *samples]


def _samples(name: str, values: Mapping[Any, Value], labels: tuple[str, ...]) -> Lines:
    return [f"{PREFIX}{name}{_braces(_pairs(labels, of))} {value}" for of, value in values.items()]


@lru_cache(MOST_KNOWN)
def _pairs(labels: tuple[str, ...], values: Labels) -> str:
    """Several families have the same, and every scrape again."""
    pairs = zip(labels, values, strict=True)
    return ",".join(f'{label}="{value.translate(ESCAPES)}"' for label, value in pairs)


def _braces(pairs: str) -> str:
    return f"{{{pairs}}}" if pairs else ""
