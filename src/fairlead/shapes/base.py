"""What all shapes share: the types of fields, and the way from a value to its JSON and back."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

PriorityName = Literal["high", "medium", "low"]


Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:-]+$")]


Short = Annotated[str, Meta(min_length=1, max_length=200)]


Units = Annotated[int, Meta(ge=1, le=1_000_000_000)]


Seconds = Annotated[float, Meta(ge=0, le=315_360_000)]


SomeSeconds = Annotated[float, Meta(ge=0.001, le=315_360_000)]


Time = Annotated[str, Meta(max_length=40, description="RFC 3339", extra_json_schema={"format": "date-time"})]


Fence = Annotated[int, Meta(ge=1)]


Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class PageQuery(Body, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(pattern="^[0-9]{0,9}$")] = ""


class LongPageQuery(Body, frozen=True):
    """Of lists that are mostly short: without a `limit` a page has all of them, up to 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=4000)] = ""


class NoQuery(Body, frozen=True):
    pass


StatusName = Literal["delayed", "queued", "executing", "completed", "failed", "cancelled", "dead_letter"]


class Answer(Struct, kw_only=True):
    pass
