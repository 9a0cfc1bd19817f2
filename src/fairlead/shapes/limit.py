"""Limits and leases of their units."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from fairlead.model.forecast import Pressure
from fairlead.model.limit import Lease, Limit, Slot
from fairlead.settings.rates import read_rate
from fairlead.shapes.base import (
    Answer,
    Body,
    Fence,
    LongPageQuery,
    Moment,
    Name,
    PriorityName,
    Shape,
    Short,
    Units,
)


class LimitBody(Body, frozen=True):
    """Slots (`limit`), or a rate such as `60/min`."""

    limit: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    burst: Units | None = None
    shared: bool | None = None  # every tenant may use it; null: unchanged


class LimitChange(LimitBody, frozen=True):
    """What the limit allows; or `paused` alone, which keeps that."""

    paused: bool | None = None


class LeaseBody(Body, frozen=True):
    lease_seconds: Annotated[float, Meta(ge=0.001, le=86_400)]
    units: Units = 1
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0
    holder: Short | None = None
    lease_id: Name | None = None
    priority: PriorityName | None = None  # medium
    user_id: Short | None = None
    keep_place: bool = False


class RenewBody(Body, frozen=True):
    lease_seconds: Annotated[float, Meta(ge=0.001, le=86_400)] = 30
    fence: Fence | None = None


class TenantQuery(Body, frozen=True):
    tenant: Short | None = None  # for operators: the tenant whose limits are meant


LimitState = Literal["waiting", "full", "paused"]


class LimitsQuery(LongPageQuery, frozen=True):
    tenant: Short | None = None
    sort: Literal["name", "pressure"] = "name"  # pressure: the longest waits first
    search: Short | None = None  # a part of the name, in any case
    state: LimitState | None = None  # waiting: it makes somebody wait


class HolderQuery(TenantQuery, frozen=True):
    lease_id: Name | None = None


class ForceQuery(TenantQuery, frozen=True):
    force: bool = False
    fence: Fence | None = None


class PressureAnswer(Shape[Pressure]):
    """By the latest forecast; priorities are `high`, `medium` and `low`."""

    at: Moment  # when it was made
    waiting: dict[str, int]  # tasks, by effective priority
    held: dict[str, int]  # units by the priority of the task; `lease`: of leases without a task
    last_start_p50: Moment | None  # when the last that waits now will start; null: not known


class LimitAnswer(Shape[Limit], omit_defaults=True):
    name: str
    kind: Literal["slots", "rate"]
    limit: int
    active: int
    waiting: int
    room: int
    paused: bool
    held_back: bool
    shared: bool  # every tenant may use it
    tenant: str | None  # that owns it; null: the operator's
    rate: str | None = None
    burst: int | None = None
    pressure: PressureAnswer | None = None  # null: nothing waits for it or holds it

    def to_value(self, **given: Any) -> Limit:
        """The answer does not name the sub-queue that units are held back for: it may be another tenant's."""
        interval = None if self.rate is None else read_rate(self.rate)
        return super().to_value(interval_us=interval, hold="" if self.held_back else None, **given)


class LimitsAnswer(Answer):
    limits: list[LimitAnswer]
    next_cursor: str | None
    total: int | None = None  # how many there are; null with the key of a tenant
    waited_for: int | None = None  # how many make tasks wait, by the latest forecast; null: there is none


class DeletedLimit(Answer):
    name: str
    deleted: Literal[True]


class SlotAnswer(Shape[Slot]):
    names: ClassVar = {"slot_id": "lease_id", "worker_id": "holder"}

    slot_id: str
    task_id: str | None
    worker_id: str | None
    expires_at: Moment | None
    units: int
    tenant: str | None  # that acquired the lease

    def to_value(self, **given: Any) -> Slot:
        return super().to_value(is_task=self.task_id is not None, **given)


class LimitAndSlots(LimitAnswer, kw_only=True):
    names: ClassVar = {"group": "name"}

    group: str
    slots: list[SlotAnswer]
    has_more_slots: bool


class LeaseAnswer(Shape[Lease]):
    lease_id: str
    fence: int
    expires_at: Moment


class ReleasedLease(Answer):
    lease_id: str
    released: Literal[True]
