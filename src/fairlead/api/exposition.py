"""The text format of Prometheus, version 0.0.4."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.model.metrics import Histogram, Labels

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "fairlead_"
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
        begin = f"{PREFIX}{name}_bucket{{{','.join([*pairs, ''])}"
        lines += [f"{begin}{end}{count}" for end, count in zip(ends, counts, strict=True)]
        lines.append(f"{PREFIX}{name}_sum{_braces(pairs)} {one.sum_ms / 1000}")
        lines.append(f"{PREFIX}{name}_count{_braces(pairs)} {counts[-1]}")
    return _family(name, "histogram", about, lines)


def page(families: Iterable[Lines]) -> bytes:
    return "\n".join([*(line for lines in families for line in lines), ""]).encode()


def _family(name: str, kind: str, about: str, samples: Lines) -> Lines:
    return [f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} {kind}", *samples]


def _samples(name: str, values: Mapping[Any, Value], labels: Sequence[str]) -> Lines:
    return [f"{PREFIX}{name}{_braces(_pairs(labels, of))} {value}" for of, value in values.items()]


def _pairs(labels: Sequence[str], values: Labels) -> list[str]:
    return [f'{label}="{value.translate(ESCAPES)}"' for label, value in zip(labels, values, strict=True)]


def _braces(pairs: Sequence[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""
