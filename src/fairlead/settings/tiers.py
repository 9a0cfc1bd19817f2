"""Tiers: classes of how long a task may run, and which share of the capacity each may take."""

from typing import Annotated, Literal

from msgspec import Meta

from fairlead.settings.base import Positive, Problem, Section, SomeSeconds, wrong

Share = Annotated[str, Meta(pattern="^(100|[1-9][0-9]?)%$", description='a share such as "50%"')]
Victim = Literal["youngest", "random"]
VICTIM = "victim"  # the only name in [tiers] that is not a tier
NOT_TIERS = ("interactive",)  # a duration of its own


class Tier(Section, frozen=True):
    """A class of tasks by how long they may run. NAME is what a task says as its `duration`. Tiers are
    checked, but this version does not use them yet.
    """

    #: How long a task of the tier may run. Example: 10
    seconds: SomeSeconds | None = None
    #: How many run at once: a number, or a share of the live capacity. Example: "50%"
    limit: Share | Positive | None = None

    def problem(self) -> Problem | None:
        if self.seconds is None:
            return wrong("seconds is missing: say how long a task may run, as in { seconds = 10 }", "seconds")
        return None


TierEntry = Tier | Victim
