"""Limits and leases of their units."""

from typing import Annotated, Literal

from msgspec import Meta

from fairlead.shapes.base import Answer, Body, Fence, LongPageQuery, Name, PriorityName, Short, Units


class LimitBody(Body, frozen=True):
    """Slots (`limit`), or a rate such as `60/min`."""

    limit: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    burst: Units | None = None
    shared: bool | None = None  # every tenant may name it; null: as before


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
    tenant: Short | None = None  # whose limits are meant; for operators


class LimitsQuery(LongPageQuery, frozen=True):
    tenant: Short | None = None


class HolderQuery(TenantQuery, frozen=True):
    lease_id: Name | None = None


class ForceQuery(TenantQuery, frozen=True):
    force: bool = False
    fence: Fence | None = None


class LimitAnswer(Answer):
    name: str
    kind: Literal["slots", "rate"]
    limit: int
    active: int
    waiting: int
    room: int
    paused: bool
    held_back: bool
    shared: bool  # with all tenants, which may name it
    tenant: str | None  # whose own it is; null: the operator's
    rate: str | None = None
    burst: int | None = None


class LimitsAnswer(Answer):
    limits: list[LimitAnswer]
    next_cursor: str | None


class SlotAnswer(Answer):
    slot_id: str
    task_id: str | None
    worker_id: str | None
    expires_at: str | None
    units: int
    tenant: str | None  # that acquired the lease


class LimitAndSlots(LimitAnswer, kw_only=True):
    group: str
    slots: list[SlotAnswer]
    has_more_slots: bool


class LeaseAnswer(Answer):
    lease_id: str
    fence: int
    expires_at: str


class ReleasedLease(Answer):
    lease_id: str
    released: Literal[True]
