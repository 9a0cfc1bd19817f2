"""What holders of limits say of themselves: when they began and ended, whatever the engine knows of it."""

import contextlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Run(NamedTuple):
    limit: str
    task: str
    fence: int
    began: int  # ns of the machine's monotonic clock
    ended: int  # or 0


@contextlib.contextmanager
def noted(record: str, limit: str, task: str, fence: int) -> Iterator[None]:
    """However the block ends."""
    _append(record, f"began {limit} {task} {fence} {time.monotonic_ns()}\n")
    try:
        yield
    finally:
        _append(record, f"ended {limit} {task} {fence} {time.monotonic_ns()}\n")


def _append(path: str, line: str) -> None:
    """In one write, which no other process can come between."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def read(record: Path) -> list[Run]:
    runs: list[Run] = []
    open_runs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for line in record.read_text().splitlines():
        what, limit, task, fence, at = line.split()
        key = task, int(fence)
        if what == "began":
            open_runs[key].append(len(runs))
            runs.append(Run(limit, task, int(fence), int(at), 0))
        else:
            number = open_runs[key].pop()
            runs[number] = runs[number]._replace(ended=int(at))
    return runs


def over_limit(runs: Iterable[Run], limits: Mapping[str, int]) -> list[str]:
    """Each instant at which more ran than a limit allows."""
    events = [(run.began, 1, run.limit) for run in runs] + [
        (run.ended, 0, run.limit) for run in runs if run.ended
    ]
    running, found = Counter[str](), []
    for at, begins, limit in sorted(events):  # one that ends at the instant another begins has ended
        running[limit] += 1 if begins else -1
        if begins and running[limit] > limits.get(limit, len(events)):
            found.append(f"{running[limit]} of {limits[limit]} {limit} at {at}")
    return found


def repeated_fences(runs: Iterable[Run]) -> list[int]:
    return [fence for fence, count in Counter(run.fence for run in runs).items() if count > 1]
