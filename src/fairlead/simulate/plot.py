"""The waits of one or two replays as a small SVG, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from fairlead.model.measures import Measures, Waits

WIDTH, LEFT, RIGHT, TOP = 720, 90, 60, 64
BAR, GAP, GROUP_GAP = 14, 4, 18
TICKS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h", 864_000: "10 d"}
#: How solid the bar is up to each percentile.
STEPS = {"p99": 0.25, "p95": 0.5, "p50": 1.0}

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .grid { stroke: #24292f; stroke-opacity: .15; }
  .most { stroke-width: 2; }
  .v0 { fill: #0969da; stroke: #0969da; } .v1 { fill: #bc4c00; stroke: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .grid { stroke: #e6edf3; }
    .v0 { fill: #58a6ff; stroke: #58a6ff; } .v1 { fill: #f0883e; stroke: #f0883e; }
  }
  .bar { stroke: none; }
"""


def draw_waits(replays: Mapping[str, Measures]) -> str:
    """By name, at most two of them."""
    names = list(replays)
    groups = list(next(iter(replays.values())).waits)
    most = max((waits.max for one in replays.values() for waits in one.waits.values() if waits), default=1.0)
    scale = _Scale(max(most, 10.0))
    size = len(names) * (BAR + GAP) + GROUP_GAP
    height = TOP + len(groups) * size + 30
    parts = [*_legend(names), *_grid(scale, height)]
    for row, group in enumerate(groups):
        top = TOP + row * size
        middle = top + (size - GROUP_GAP) / 2 + 2
        parts.append(f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{group}</text>')
        for number, measures in enumerate(replays.values()):
            parts += _bar(number, measures.waits[group], scale, top + number * (BAR + GAP))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Waiting times by priority">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


class _Scale:
    """Logarithmic from 1 s; less than that is at the left edge."""

    def __init__(self, most: float) -> None:
        self.most = most

    def x(self, seconds: float) -> float:
        share = math.log(max(seconds, 1.0)) / math.log(self.most)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def _legend(names: Sequence[str]) -> list[str]:
    parts = [
        f'<text x="{LEFT}" y="16">Wait by base priority: up to p50, p95, p99; the line is the longest</text>'
    ]
    x = LEFT
    for number, name in enumerate(names):
        parts.append(f'<rect class="bar v{number}" x="{x}" y="28" width="12" height="12"/>')
        parts.append(f'<text x="{x + 18}" y="38">{escape(name)}</text>')
        x += 18 + 8 * len(name) + 24
    return parts


def _grid(scale: _Scale, height: int) -> list[str]:
    parts = []
    for seconds, text in TICKS.items():
        if seconds <= scale.most:
            x = scale.x(seconds)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 24}"/>')
            parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{text}</text>')
    return parts


def _bar(number: int, waits: Waits | None, scale: _Scale, y: float) -> list[str]:
    if waits is None:
        return []
    parts = []
    for name, opacity in STEPS.items():
        width = max(2.0, scale.x(getattr(waits, name)) - LEFT)
        parts.append(
            f'<rect class="bar v{number}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" '
            f'fill-opacity="{opacity}"/>'
        )
    x = scale.x(waits.max)
    parts.append(f'<line class="most v{number}" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + BAR}"/>')
    return parts
