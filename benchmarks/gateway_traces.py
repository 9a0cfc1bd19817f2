"""Traces of real gateways as requests: what came when, from whom, and how long it ran."""

import csv
import gzip
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.bench import Bench
from fairlead.simulate.scenarios import PROCESSORS
from fairlead.simulate.trace_files import read_trace


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request; times in seconds of the trace."""

    arrival: float
    duration: float
    task_type: str
    user: str
    priority: str
    limits: dict[str, int]
    size_hint: str = ""

    @property
    def units(self) -> int:
        return max(self.limits.values(), default=1)


@dataclass(frozen=True)
class Part:
    """A part of a trace, and what it is replayed on."""

    name: str
    about: str
    requests: Sequence[Wanted]
    slots: int
    limits: dict[str, int]
    faster: int


def priority_of(user: str) -> str:
    """By the name of the user: one of ten has high priority, three have medium, six have low."""
    share = hashlib.sha256(user.encode()).digest()[0] / 256
    return "high" if share < 0.1 else "medium" if share < 0.4 else "low"


def images(file: Path, seconds: float) -> Part:
    """GenTD26: an image gateway. The models are limits, as popular as they are."""
    slots, begin = 3, datetime(2024, 12, 2, 20, 57, 50).timestamp()
    rows = [row for row in _rows(file) if row["predict_status"] not in ("PENDING", "PROCESSING")]
    shares = Counter(row["checkpoint_model_version_id"] for row in rows)
    limits = {
        model: min(slots - 1, math.ceil(1.5 * count / len(rows) * slots)) for model, count in shares.items()
    }
    times = (datetime.fromisoformat(row["gmt_create"]).timestamp() - begin for row in rows)
    requests = [
        Wanted(
            at,
            float(row["exec_time_seconds"] or 0),
            "image",
            row["groupId"],
            priority_of(row["groupId"]),
            {row["checkpoint_model_version_id"]: 1},
        )
        for at, row in zip(times, rows, strict=True)
        if 0 <= at < seconds
    ]
    used = {name: limits[name] for request in requests for name in request.limits}
    about = f"{seconds / 60:.0f} minutes from its busiest hours (2 December 2024, 20:57), {slots} slots"
    return Part("GenTD26", about, requests, slots, used, 20)


def conversations(file: Path, seconds: float) -> Part:
    """Azure 2023: calls of a language model. A call takes 0.1 s + context / 8,000 s + generated / 50 s."""
    slots, rows = 26, list(_rows(file))
    begin = datetime.fromisoformat(rows[0]["TIMESTAMP"][:26]).timestamp()
    requests = []
    for count, row in enumerate(rows):
        at = datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() - begin
        took = 0.1 + int(row["ContextTokens"]) / 8_000 + int(row["GeneratedTokens"]) / 50
        user = f"user{count % 97}"
        if at < seconds:
            requests.append(Wanted(at, took, "chat", user, priority_of(user), {}))
    about = f"its first {seconds / 60:.0f} minutes, {slots} slots, durations by tokens"
    return Part("Azure 2023", about, requests, slots, {}, 5)


def jobs(file: Path, seconds: float) -> Part:
    """HPC2N: jobs of a cluster, which take several of its 240 processors at once: units of one limit."""
    processors, trace = 240, read_trace(file)
    requests = []
    for arrival, duration, wants, owner in zip(
        trace.arrivals, trace.durations, trace.wants, trace.owners, strict=True
    ):
        user, kind = trace.people[owner][1], trace.kinds[wants]
        needs = {"cpus": kind.limits.get(PROCESSORS, 1)}
        if arrival < seconds * 1000:
            times = arrival / 1000, duration / 1000
            requests.append(Wanted(*times, "job", user, priority_of(user), needs, kind.size_hint))
    about = f"its first {seconds / 86_400:.0f} days, {processors} processors"
    return Part("HPC2N", about, requests, processors, {"cpus": processors}, 1)


@dataclass(frozen=True)
class Source:
    """A trace: its file, and how many of its seconds are replayed live and on a virtual clock."""

    file: str
    read: Callable[[Path, float], Part]
    live: float  #: at most five minutes of a replay; 0: never
    virtual: float  #: as much as takes some minutes


SOURCES = (
    Source("gentd26_lora_request_trace.csv.gz", images, 5_400, 86_400),
    Source("AzureLLMInferenceTrace_conv.csv.gz", conversations, 900, 1_200),
    Source("hpc2n_first3171.swf.gz", jobs, 0, 5_000_000),
)


def wanted(scenario: str, bench: Bench, *, virtual: bool = False) -> list[Part]:
    """Of the traces that are there."""
    if bench.traces is None:
        raise SystemExit(
            f"{scenario}: no traces are shipped with Fairlead: name a folder of them with --traces"
        )
    folder, share = bench.traces, 0.02 if bench.quick else 1.0
    spans = [(source, source.virtual if virtual else source.live) for source in SOURCES]
    found = [
        source.read(folder / source.file, seconds * share)
        for source, seconds in spans
        if seconds and (folder / source.file).exists()
    ]
    if not found:
        raise SystemExit(
            f"{scenario}: {folder} has none of the traces that benchmarks/gateway_traces.py reads"
        )
    return found


def _rows(file: Path) -> Sequence[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))
