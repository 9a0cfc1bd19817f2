"""Waiting tasks that will be promoted."""

from typing import Annotated, ClassVar

from msgspec import Meta

from fairlead.model.promotion import Promotion
from fairlead.shapes.base import Answer, Body, Moment, PriorityName, Shape


class PromotionsQuery(Body, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class PromotionAnswer(Shape[Promotion]):
    names: ClassVar = {"from_priority": "before", "to_priority": "after"}

    task_id: str
    task_type: str
    user_id: str | None
    tenant: str | None
    from_priority: PriorityName
    to_priority: PriorityName
    at: Moment
    waiting_since: Moment


class PromotionsAnswer(Answer):
    promotions: list[PromotionAnswer]  # the next first
