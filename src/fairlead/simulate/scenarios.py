"""A trace under settings: what the engine is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.model.accounts import account_of, weight_of
from fairlead.rules import limits as rules
from fairlead.rules.tiers import sizes_of_tiers
from fairlead.rules.values import Policy, Tier, Worker
from fairlead.settings import Rate, Settings
from fairlead.settings.tiers import tiers_of
from fairlead.simulate.traces import Trace, Wants, in_line
from fairlead.simulate.values import Kind, Snapshot, Task

PROCESSORS = "processors"  #: of an SWF trace; ignored unless the settings have such a limit


@dataclass(frozen=True)
class Scenario:
    """One worker with all slots and every capability, and the limits of the settings."""

    name: str
    trace: Trace
    settings: Settings
    snapshot: Snapshot
    kinds: list[Kind]  #: as `Trace.kinds`
    accounts: list[str]  #: as `Trace.people`
    weights: list[float]

    @property
    def slots(self) -> int:
        return self.settings.worker.capacity

    def kind_of(self, number: int) -> Kind:
        """Of a task of the trace."""
        return self.kinds[self.trace.wants[number]]

    def size_of(self, number: int) -> str:
        """The `size_hint` of a task of the trace."""
        return self.trace.kinds[self.trace.wants[number]].size_hint

    def duration_of(self, kind: Kind) -> str:
        """The tier that was asked for; empty if none was."""
        if kind.tier is None or kind.elastic:
            return ""
        return self.snapshot.policy.tiers[kind.tier].name

    def tasks(self) -> Iterator[Task]:
        trace, kinds, accounts, weights = self.trace, self.kinds, self.accounts, self.weights
        columns = (trace.wants, trace.bases, trace.owners, trace.arrivals, trace.durations)
        for number, (kind, base, owner, arrival, duration) in enumerate(zip(*columns, strict=True)):
            yield Task(number, kinds[kind], base, accounts[owner], arrival, duration, weights[owner])


def scenario(name: str, file: str, trace: Trace, settings: Settings) -> Scenario:
    """Raises if the settings lack what the trace names; `file` is the name of the trace."""
    policy = policy_of(settings)
    limits = {limit: _limit(given) for limit, given in settings.limits.items()}
    capacity = settings.worker.capacity
    for tier, size in sizes_of_tiers(policy.tiers, capacity).items():
        limits[tier] = rules.Slots(size)
    kinds = [_kind(file, wants, settings, policy, limits) for wants in trace.kinds]
    capabilities = frozenset(name for kind in kinds for name in kind.capabilities)
    worker = Worker("worker", capabilities, capacity=capacity, reserve=settings.worker.reserve)
    snapshot = Snapshot(trace.arrivals[0], policy, [worker], limits)
    accounts = [account_of(tenant, user, settings) for tenant, user in trace.people]
    weights = [weight_of(tenant, user, settings) for tenant, user in trace.people]
    return Scenario(name, trace, settings, snapshot, kinds, accounts, weights)


def policy_of(settings: Settings) -> Policy:
    promotion, scheduling = settings.promotion, settings.scheduling
    return Policy(
        budget=promotion.budget,
        low_to_medium=_ms(promotion.low_to_medium_seconds),
        low_to_high=_ms(promotion.low_to_high),
        medium_to_high=_ms(promotion.medium_to_high_seconds),
        hold_after=_ms(scheduling.hold_after_seconds),
        hold_for=_ms(scheduling.hold_seconds),
        tiers=tuple(
            Tier(
                name,
                _ms(tier.seconds or 0),
                tier.limit if isinstance(tier.limit, int) else None,
                int(tier.limit[:-1]) if isinstance(tier.limit, str) else 100,
            )
            for name, tier in tiers_of(settings.tiers).items()
        ),
    )


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _limit(given: object) -> rules.Limit:
    if isinstance(given, Rate):
        return rules.Rate(given.count, _ms(given.period_seconds), given.burst)
    return rules.Slots(given.limit)  # type: ignore[attr-defined]


def _kind(
    file: str, wants: Wants, settings: Settings, policy: Policy, limits: dict[str, rules.Limit]
) -> Kind:
    declared = settings.tasks.get(wants.task_type)
    needs = {**(declared.limits if declared else {}), **wants.limits}
    if PROCESSORS not in limits:
        needs.pop(PROCESSORS, None)
    for name, units in needs.items():
        if name not in limits or name.startswith(rules.TIER):
            raise in_line(file, wants.line, f"there is no limit {name}: add it to [limits] of --config")
        if not limits[name].accepts(units):
            raise in_line(file, wants.line, f"{units} units are more than all that {name} has")
    if wants.tier is not None and wants.tier not in {tier.name for tier in policy.tiers}:
        raise in_line(file, wants.line, f"there is no tier {wants.tier}: add it to [tiers] of --config")
    capabilities = wants.capabilities | frozenset(declared.required_capabilities if declared else ())
    return Kind.of(wants.task_type, capabilities, needs, policy.tiers, wants.tier)
