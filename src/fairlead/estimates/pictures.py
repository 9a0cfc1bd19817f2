"""The picture of a replay: what the estimator would read of a namespace in the same state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from fairlead.estimates.picture import Listed, Picture, Run, Waiting, ranks_to_read
from fairlead.estimates.reading import ANY_LANE
from fairlead.rules.fairness import STRIDE, USUAL
from fairlead.rules.limits import Rate
from fairlead.rules.values import Place
from fairlead.settings.tiers import written
from fairlead.simulate import values
from fairlead.simulate.scenarios import Scenario
from fairlead.simulate.values import Kind, Needs, Snapshot


class Pictures:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._policy = vars(scenario.snapshot.policy) | {"tiers": written(scenario.settings.tiers)}
        self._signatures = {kind: kind.signature for kind in scenario.kinds}
        self._audiences = {name.partition("|")[0]: ANY_LANE for name in self._signatures.values()}
        self._workers = [
            Listed(one.id, f"*;{','.join(sorted(one.capabilities))}", one.capacity, one.reserve)
            for one in scenario.snapshot.workers
        ]

    def picture(self, seen: Snapshot) -> Picture:
        queued = Counter(one.place for one in seen.waiting)
        meta = {"seq": str(seen.last_seq)}
        meta |= {f"queued_{place}": str(count) for place, count in queued.items()}
        meta |= {f"virtual_{place}": str(ledger.v) for place, ledger in seen.ledgers.items()}
        meta |= {f"streak_{priority:d}": str(streak) for priority, streak in seen.streaks.items()}
        return Picture(
            at=seen.now,
            meta=meta,
            policy=self._policy,
            workers=self._workers,
            limits=_limits(seen),
            waiting=list(self._waiting(seen.waiting, queued)),
            running=[self._run(one) for one in seen.running],
            audiences=self._audiences,
            fins={place: ledger.fin for place, ledger in seen.ledgers.items()},
            paused=(),
        )

    def _waiting(self, waiting: Sequence[values.Waiting], queued: Mapping[Place, int]) -> Iterator[Waiting]:
        """The first of each sub-queue, then fewer and fewer."""
        by_sub: dict[tuple[Place, str], list[values.Waiting]] = {}
        for one in sorted(waiting, key=attrgetter("place", "tag", "seq")):
            by_sub.setdefault((one.place, self._signatures[one.task.kind]), []).append(one)
        better = {place: sum(queued[one] for one in Place if one < place) for place in Place}
        sizes = [(len(all_of), queued[place], better[place]) for (place, _), all_of in by_sub.items()]
        plan = ranks_to_read(sizes, self._scenario.slots)
        for ((place, signature), all_of), ranks in zip(by_sub.items(), plan, strict=True):
            for rank, count in ranks:
                yield self._task(f"{place}:{signature}", all_of[rank], count)

    def _task(self, sub: str, one: values.Waiting, stands_for: int) -> Waiting:
        task = one.task
        # the weight and the factor of an account are only used together, as the stride
        facts = self._facts(task.kind, task.number, task.base, task.account) | {
            "weight": STRIDE * USUAL / one.stride
        }
        return Waiting(sub, one.tag, one.seq, str(task.number), stands_for, task.arrival, facts)

    def _run(self, one: values.Running) -> Run:
        kind, tiers = self._scenario.kind_of(one.number), self._scenario.snapshot.policy.tiers
        number = kind.tier if one.tier is None else one.tier
        tier = tiers[number] if number is not None else None
        return Run(
            holder=str(one.number),
            needs=needs_text(one.needs),
            worker=one.worker,
            started=one.started,
            until=one.started + tier.ms if tier else 0,
            tier=tier.name if tier else "",
            facts=self._facts(kind, one.number, one.base, one.account),
        )

    def _facts(self, kind: Kind, number: int, base: int, account: str) -> dict[str, Any]:
        return {
            "type": kind.type,
            "priority": base,
            "fair": account,
            "capabilities": ",".join(sorted(kind.capabilities)),
            "elastic": kind.elastic,
            "duration": self._scenario.duration_of(kind),
            "size_hint": self._scenario.size_of(number),
            "limits": needs_text(kind.needs),
        }


def needs_text(needs: Needs) -> str:
    return ",".join(f"{name}={units}" for name, units in needs)


def _limits(seen: Snapshot) -> dict[str, dict[str, str]]:
    used: Counter[str] = Counter()
    for run in seen.running:
        used.update(dict(run.needs))
    waiting = Counter(name for one in seen.waiting for name, _ in one.task.kind.needs)
    found: dict[str, dict[str, str]] = {}
    for name, limit in seen.limits.items():
        if isinstance(limit, Rate):
            known = {"kind": "rate", "interval": limit.interval, "burst": limit.burst, "tat": limit.tat}
        else:
            known = {"kind": "slots", "limit": limit.limit, "used": used[name]}
        found[name] = {field: str(value) for field, value in (known | {"waiting": waiting[name]}).items()}
    return found
