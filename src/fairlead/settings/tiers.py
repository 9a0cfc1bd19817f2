"""Tiers: classes of how long a task may run, and which share of the capacity each may take."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta

from fairlead.settings.base import Positive, Problem, Section, SomeSeconds, wrong

Share = Annotated[str, Meta(pattern="^(100|[1-9][0-9]?)%$", description='a share such as "50%"')]
Victim = Literal["youngest", "random"]
VICTIM = "victim"  # the only name in [tiers] that is not a tier
MOST_TIERS = 16
TIER = "tier:"  # begins the limit of a tier
INTERACTIVE = "interactive"  # a duration of its own


class Tier(Section, frozen=True):
    """A class of tasks by how long they may run, the shortest first. NAME is what a task gives as its
    `duration`. See [tiers](tiers.md).
    """

    #: How long a task of the tier may run. Example: 10
    seconds: SomeSeconds | None = None
    #: How many tasks of this tier and of longer ones run at once: a number, or a share of the live capacity.
    #: By default the whole capacity. Example: "50%"
    limit: Share | Positive | None = None

    def problem(self) -> Problem | None:
        if self.seconds is None:
            return wrong("seconds is missing: say how long a task may run, as in { seconds = 10 }", "seconds")
        return None


TierEntry = Tier | Victim


def tiers_of(entries: Mapping[str, TierEntry]) -> dict[str, Tier]:
    return {name: entry for name, entry in entries.items() if isinstance(entry, Tier)}


def tiers_problem(entries: Mapping[str, TierEntry]) -> Problem | None:
    """Tiers are listed from the shortest to the longest, and a longer one has no more room."""
    tiers = tiers_of(entries)
    if len(tiers) > MOST_TIERS:
        return Problem(f"tiers: {len(tiers)} tiers, at most {MOST_TIERS} are accepted", (("tiers",),))
    for (before, shorter), (name, tier) in pairwise(tiers.items()):
        keys = (("tiers", name), ("tiers", before))
        assert shorter.seconds is not None and tier.seconds is not None  # Tier.problem
        if tier.seconds <= shorter.seconds:
            words = (
                f"tiers.{name}: {tier.seconds:g} s is not longer than the {shorter.seconds:g} s of {before}"
            )
            return Problem(f"{words}: list the shortest tier first", keys)
        if _is_more(tier.limit, shorter.limit):
            words = f"tiers.{name}: its limit of {tier.limit} is more than the {shorter.limit} of {before}"
            return Problem(f"{words}, whose limit counts tasks of {name} too", keys)
    return None


def _is_more(limit: str | int | None, other: str | int | None) -> bool:
    """Whether the first is more than the second for sure; a number and a share cannot be compared."""
    first, second = (_share(one) for one in (limit, other))
    if first is not None and second is not None:
        return first > second
    return isinstance(limit, int) and isinstance(other, int) and limit > other


def _share(limit: str | int | None) -> int | None:
    return 100 if limit is None else int(limit[:-1]) if isinstance(limit, str) else None


def written(entries: Mapping[str, TierEntry]) -> str:
    """As the store keeps them: `fast=3000/100%,slow=30000/1`."""
    return ",".join(
        f"{name}={round((tier.seconds or 0) * 1000)}/{tier.limit or '100%'}"
        for name, tier in tiers_of(entries).items()
    )
