"""Writes traces: past work as a CSV file that the simulator reads."""

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.simulate.trace_files import COLUMNS
from fairlead.simulate.what_if import PastTask


class TraceWriter:
    """Of tasks in the order of their arrivals; the first arrives at 0."""

    def __init__(self, file: io.TextIOBase) -> None:
        self._rows = csv.writer(file, lineterminator="\n")
        self._rows.writerow(COLUMNS)
        self._began: int | None = None
        self._last = 0
        self.count = 0

    def add(self, task: PastTask) -> None:
        began = self._began = task.arrival if self._began is None else self._began
        self._last = max(self._last, task.arrival - began)
        cells = (
            _seconds(self._last),
            _seconds(task.duration),
            task.task_type,
            task.priority.word,
            task.user_id or "",
            task.tenant or "",
            ";".join(f"{name}={units}" for name, units in sorted(task.limits.items())),
            ";".join(task.capabilities),
            task.tier or "",
            task.size_hint or "",
        )
        self._rows.writerow(cells)
        self.count += 1


@contextmanager
def trace_writer(path: Path) -> Iterator[TraceWriter]:
    """Compressed if its name ends in `.gz`."""
    with path.open("wb") as raw:
        packed = gzip.GzipFile(fileobj=raw, mode="wb") if path.suffix == ".gz" else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            yield TraceWriter(file)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"
