"""A limit, the holders of its units, and a lease of some of them."""

from dataclasses import dataclass

from fairlead import errors
from fairlead.checks import check_ms, check_name, check_seconds, check_short, check_units, check_whole
from fairlead.model.forecast import Pressure
from fairlead.model.priority import priority_named
from fairlead.model.tenants import scope_of
from fairlead.settings import Rate, Slots
from fairlead.settings.rates import rate_text
from fairlead.settings.tiers import TIER

MOST_SLOTS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """Units that are held."""

    lease_id: str  # of a task: its id
    units: int
    is_task: bool
    holder: str | None = None  # the worker that runs the task, or the one named by the acquire
    expires_at: int | None = None  # ms
    tenant: str | None = None  # that acquired the lease; None: of a task, or the operator's

    @property
    def task_id(self) -> str | None:
        return self.lease_id if self.is_task else None


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    kind: str
    limit: int  # slots, or the burst of a rate
    active: int
    waiting: int  # queued tasks that need it, and acquires that wait for it
    room: int
    paused: bool
    interval_us: int | None
    hold: str | None  # the sub-queue units are kept back for
    slots: tuple[Slot, ...] = ()  # of one limit, up to 100; the list of all limits has none
    has_more_slots: bool = False
    tenant: str | None = None  # whose own it is; None: the operator's
    shared: bool = False  # with all tenants, which may name it
    pressure: Pressure | None = None  # None: nothing waits for it or holds it, or it was not read

    @property
    def held_back(self) -> bool:
        return self.hold is not None

    @property
    def rate(self) -> str | None:
        return None if self.interval_us is None else rate_text(self.interval_us)

    @property
    def burst(self) -> int | None:
        return None if self.interval_us is None else self.limit

    @property
    def full_name(self) -> str:
        """As operators distinguish it from those of others: `acme/gpu` is the limit `gpu` of tenant acme."""
        return scope_of(self.tenant) + self.name


@dataclass(frozen=True, slots=True)
class Lease:
    lease_id: str
    limit: str
    fence: int
    expires_at: int
    tenant: str | None = None  # that acquired it by itself


def check_wish(
    units: int,
    lease_ms: int,
    holder: str,
    lease_id: str | None,
    wait_seconds: float,
    priority: str,
    user_id: str | None,
) -> None:
    """Of an acquire; raises InvalidInput."""
    check_units("units", units)
    check_ms("lease_ms", lease_ms)
    check_short("holder", holder or None)
    if lease_id is not None:
        check_name("lease_id", lease_id)
    check_seconds("wait_seconds", wait_seconds, zero=True)
    priority_named(priority)
    check_short("user_id", user_id)


def limit_arguments(name: str, wanted: Slots | Rate) -> tuple[str, int | str, int | str, int | str]:
    """Kind, limit, interval and burst, as the scripts take them; raises InvalidInput."""
    check_name("name", name)
    if name.startswith(TIER):
        raise errors.InvalidInput("name", "is the limit of a tier: change [tiers] in the settings")
    if isinstance(wanted, Slots):
        check_whole("limit", wanted.limit, MOST_SLOTS)
        return ("slots", wanted.limit, "", "")
    if not isinstance(wanted, Rate) or wanted.period_seconds is None:
        raise errors.InvalidInput("limit", "is neither a number of slots nor a rate")
    check_units("rate", wanted.count)
    check_units("burst", wanted.burst)
    check_seconds("rate", wanted.period_seconds)
    return ("rate", "", wanted.interval_us, wanted.burst)
