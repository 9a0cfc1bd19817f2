"""A process with all its children: the CPU they have used, and their sudden end. Reads Linux's /proc."""

import contextlib
import os
import signal
from collections import defaultdict
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PARENT, USED = 1, slice(11, 15)  # of the fields after the name: user and system, own and of reaped children


def cpu_seconds(pid: int) -> float:
    stats = _stats()
    return sum(sum(map(int, stats[one][USED])) for one in _tree(pid, stats)) / TICK


def kill(pid: int) -> None:
    """SIGKILL, as a crash of the machine would: the parent first, because it would start children again."""
    for one in _tree(pid, _stats()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def _tree(pid: int, stats: dict[int, list[str]]) -> list[int]:
    children = defaultdict(list)
    for one, fields in stats.items():
        children[int(fields[PARENT])].append(one)
    found = [pid] if pid in stats else []
    for one in found:
        found += children[one]
    return found


def _stats() -> dict[int, list[str]]:
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    return stats
