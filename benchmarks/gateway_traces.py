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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request; times in seconds of the trace."""

    arrival: float
    duration: float
    task_type: str
    user: str
    priority: str
    limits: dict[str, int]


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


#: The file of each trace, and how many of its seconds are replayed: at most five minutes.
TRACES: dict[str, tuple[str, Callable[[Path, float], Part], float]] = {
    "GenTD26": ("gentd26_lora_request_trace.csv.gz", images, 5_400),
    "Azure 2023": ("AzureLLMInferenceTrace_conv.csv.gz", conversations, 900),
}


def parts(folder: Path, share: float = 1.0) -> list[Part]:
    """Of the traces that are there; `share` of the usual time."""
    return [
        read(folder / name, seconds * share)
        for name, read, seconds in TRACES.values()
        if (folder / name).exists()
    ]


def _rows(file: Path) -> Sequence[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))
