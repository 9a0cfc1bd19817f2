"""23 days of a gateway for image generation (GenTD26 of Alibaba's cluster traces, not shipped with Fairlead).

Each tenant has one priority, by the SHA-1 of its name: a tenth is high, three tenths are medium. Each model
has a limit of one and a half times its share of the slots. The arrivals are those of the trace, or twice as
fast.
"""

import csv
import gzip
import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.figures import Figure
from fairlead.model.measures import Measures
from fairlead.settings import Fairness, Promotion, Settings, Slots, WorkerSettings
from fairlead.simulate.replays import measure, replay
from fairlead.simulate.scenarios import scenario
from fairlead.simulate.traces import Collector, Row, Trace

FILE = "gentd26_lora_request_trace.csv.gz"
UNFINISHED = ("PENDING", "PROCESSING")
NOBODY_AGES = Promotion(low_to_medium_seconds=0, medium_to_high_seconds=0)
IN_ONE_LINE = Fairness(by="tenant")  # no task of the trace has a tenant, so all are of one account
CASES = {
    "strict priorities": (NOBODY_AGES, IN_ONE_LINE),
    "promotion without a budget": (Promotion(budget=0), IN_ONE_LINE),
    "promotion, budget 5": (Promotion(budget=5), IN_ONE_LINE),
    "promotion, budget 5, fair shares": (Promotion(budget=5), Fairness()),
}


def figures(folder: Path) -> list[Figure]:
    found = []
    for slots, pace in ((2, 1), (3, 2)):
        trace = read(folder, pace)
        for name, (promotion, fairness) in CASES.items():
            settings = Settings(
                promotion=promotion,
                fairness=fairness,
                worker=WorkerSettings(capacity=slots),
                limits={model: Slots(limit=limit) for model, limit in limits_of(trace, slots).items()},
            )
            measures = measure(replay(scenario(name, FILE, trace, settings)))
            found += _figures(f"{slots} slots, {pace}x, {name}", measures)
    return found


def read(folder: Path, pace: float) -> Trace:
    """`pace`: how many times as fast the tasks arrive."""
    return Collector(FILE).collect(enumerate(_rows(folder / FILE, pace), 2))


def _rows(path: Path, pace: float) -> Iterator[Row]:
    first = None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["predict_status"] in UNFINISHED:
                continue
            at = datetime.fromisoformat(line["gmt_create"])
            first = first or at
            tenant, model = line["groupId"], line["checkpoint_model_version_id"]
            yield Row(
                arrival=str((at - first).total_seconds() / pace),
                duration=line["exec_time_seconds"] or "0",
                priority=priority_of(tenant),
                user_id=tenant,
                limits=f"{model}=1",
            )


def priority_of(tenant: str) -> str:
    tenth = int(hashlib.sha1(tenant.encode()).hexdigest(), 16) % 10
    return "high" if tenth < 1 else "medium" if tenth < 4 else "low"


def limits_of(trace: Trace, slots: int) -> dict[str, int]:
    counts = Counter(next(iter(trace.kinds[number].limits)) for number in trace.wants)
    return {
        model: min(slots - 1, math.ceil(1.5 * count / len(trace) * slots)) for model, count in counts.items()
    }


def _figures(case: str, measures: Measures) -> list[Figure]:
    high, low, every = (measures.waits[name] for name in ("high", "low", "all"))
    assert high and low and every and measures.slowdown and measures.jain
    values = {
        ("high, p99 wait", "s"): high.p99,
        ("low, p99 wait", "s"): low.p99,
        ("longest wait", "s"): every.max,
        ("mean slowdown", ""): measures.slowdown.mean,
        ("Jain's index", ""): measures.jain,
        ("inversions", ""): float(measures.inversions),
    }
    return [Figure(case, name, unit, [value]) for (name, unit), value in values.items()]
