"""Limits and the task types that need them."""

from msgspec import field

from fairlead.checks import check_capabilities
from fairlead.errors import InvalidInput
from fairlead.settings.base import Count, Positive, Problem, Retries, Section, SomeSeconds, wrong
from fairlead.settings.rates import default_burst, parse_rate


class Slots(Section, frozen=True):
    """A limit as a number of units, held while tasks run; 0 pauses."""

    limit: Count
    shared: bool = False  # every tenant may name it


class Rate(Section, frozen=True):
    """A limit as a token bucket: `count` units per period, at most `burst` of them at once."""

    count: Positive
    period_seconds: SomeSeconds
    burst: Positive
    shared: bool = False  # every tenant may name it

    @classmethod
    def of(cls, text: str, burst: int | None = None, *, shared: bool = False) -> "Rate":
        """`60/min`, a tenth of it at once without a `burst`; a ValueError says what a rate looks like."""
        count, period = parse_rate(text)
        burst = default_burst(count) if burst is None else burst
        return cls(count=count, period_seconds=period, burst=burst, shared=shared)

    @classmethod
    def of_submits(cls, text: str, burst: int | None = None) -> "Rate":
        """The rate of an API key: all of it at once unless `burst` is given, because clients send batches."""
        return cls.of(text, parse_rate(text)[0] if burst is None else burst)

    @property
    def interval_us(self) -> int:
        """Microseconds in which one unit grows back."""
        return max(1, int(self.period_seconds * 1_000_000) // self.count)


LimitSettings = Slots | Rate


class TaskSettings(Section, frozen=True):
    """What every task of a type gets, besides what it asks for itself. NAME is the task type."""

    #: Units of limits that each task of the type takes while it runs. Example: { image_gen = 1 }
    limits: dict[str, Positive] = field(default_factory=dict)
    #: What a worker must offer to run the type. Example: ["gpu"]
    required_capabilities: list[str] = field(default_factory=list)
    #: How long a run may take; by default as the priority says. Example: 360
    timeout_seconds: SomeSeconds | None = None
    #: How often a task is retried; by default as the priority says. Example: 3
    max_retries: Retries | None = None
    #: How long the lease of a run lasts unless it is renewed: when its worker is lost, it runs again and its
    #: units are free only after that. By default, and at least, as `lease.lease_seconds`. Example: 60
    lease_seconds: SomeSeconds | None = None

    def problem(self) -> Problem | None:
        try:
            check_capabilities(self.required_capabilities)
        except InvalidInput as problem:
            return wrong(str(problem), problem.field)
        return None
