"""Policies on the trace of an image gateway: the simulator, beside the model that the rule was designed with.

The figures of that model, which were noted when it was run, are those of `NOTED`. What the simulator plays by
the same rule has to be within 2 % of them; where the rule has changed since, `plain_model.py` has to be.
"""

from collections.abc import Mapping, Sequence

from benchmarks import image_gateway
from benchmarks.bench import Bench
from benchmarks.figures import Check, Figure, Outcome
from benchmarks.plain_model import PlainModel, Rules
from fairlead.settings import Settings, Slots, WorkerSettings
from fairlead.simulate.replays import LEAST_RUN, replay
from fairlead.simulate.scenarios import scenario
from fairlead.simulate.traces import Trace

NEAR = 0.02
MEASURES = ("high, p99 wait", "low, p99 wait", "longest wait", "mean slowdown", "Jain's index")
RULES = {
    "strict priorities": Rules(ages=False),
    "promotion without a budget": Rules(),
    "promotion, budget 5": Rules(budget=5),
    "promotion, budget 5, fair shares": Rules(budget=5, fair=True),
}
CHANGED = ("promotion, budget 5", "promotion, budget 5, fair shares")  # the rule, since the model
#: By slots, how many times as fast, and policy; None: not noted.
NOTED: dict[tuple[int, int], dict[str, Sequence[float | None]]] = {
    (2, 1): {
        "strict priorities": (293, 7_113, 7_511, 35.5, 0.65),
        "promotion without a budget": (3_089, 5_917, 6_419, 34.0, 0.57),
        "promotion, budget 5": (323, 5_958, 6_480, 34.1, 0.59),
        "promotion, budget 5, fair shares": (323, 7_293, 12_174, 32.0, 0.62),
    },
    (3, 2): {
        "strict priorities": (816, 12_350, None, 64.2, None),
        "promotion without a budget": (5_293, 8_232, None, 60.4, None),
        "promotion, budget 5": (862, 8_418, None, 60.8, None),
        "promotion, budget 5, fair shares": (1_014, 10_019, None, 53.3, None),
    },
}


async def run(bench: Bench) -> Outcome:
    outcome = Outcome()
    if bench.traces is None:
        raise SystemExit("policies: name the folder of the trace with --traces; none is shipped")
    for (slots, pace), policies in NOTED.items():
        trace = image_gateway.read(bench.traces, pace)
        limits = image_gateway.limits_of(trace, slots)
        for policy, noted in policies.items():
            case = f"{slots} slots, {pace}x, {policy}"
            plain = PlainModel(trace, slots, limits, RULES[policy]).run()
            ours = _simulated(trace, slots, limits, policy)
            for name, starts in (("simulator", ours), ("model", plain)):
                is_same = name == "model" or policy not in CHANGED
                _compare(f"{case}: {name}", _measured(trace, starts), noted if is_same else None, outcome)
    return outcome


def _simulated(trace: Trace, slots: int, limits: Mapping[str, int], policy: str) -> Sequence[int]:
    promotion, fairness = image_gateway.CASES[policy]
    settings = Settings(
        promotion=promotion,
        fairness=fairness,
        worker=WorkerSettings(capacity=slots),
        limits={name: Slots(limit=limit) for name, limit in limits.items()},
    )
    return replay(scenario(policy, image_gateway.FILE, trace, settings)).starts


def _measured(trace: Trace, starts: Sequence[int]) -> Sequence[float]:
    """In the order of `MEASURES`. The p99 is that of the model: rounded down, to the 99 % of all but one."""
    waits = [start - at for start, at in zip(starts, trace.arrivals, strict=True)]
    slowdowns = [
        max(1.0, (wait + run) / max(run, LEAST_RUN)) for wait, run in zip(waits, trace.durations, strict=True)
    ]
    high, low = (_p99([w for w, base in zip(waits, trace.bases, strict=True) if base == b]) for b in (0, 2))
    by_owner: dict[int, list[float]] = {}
    for owner, slowdown in zip(trace.owners, slowdowns, strict=True):
        by_owner.setdefault(owner, []).append(slowdown)
    speeds = [len(some) / sum(some) for some in by_owner.values()]
    jain = sum(speeds) ** 2 / (len(speeds) * sum(speed * speed for speed in speeds))
    return high, low, max(waits) / 1000, sum(slowdowns) / len(slowdowns), jain


def _p99(waits: Sequence[int]) -> float:
    return sorted(waits)[int(0.99 * (len(waits) - 1))] / 1000


def _compare(
    case: str, measured: Sequence[float], noted: Sequence[float | None] | None, outcome: Outcome
) -> None:
    for index, (name, value) in enumerate(zip(MEASURES, measured, strict=True)):
        outcome.figures.append(Figure(case, name, "s" if "wait" in name else "", [value]))
        if noted and (expected := noted[index]) is not None:
            off = value / expected - 1
            held = abs(off) <= NEAR
            outcome.checks.append(Check(case, f"{name} within 2 %", held, f"{expected:g}, {off:+.1%}"))
