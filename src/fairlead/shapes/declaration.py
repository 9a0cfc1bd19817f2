"""Declarations by the code of a worker: task types, limits and pipelines."""

from typing import Annotated, Any

from msgspec import Meta, field

from fairlead.shapes.base import Answer, Body, Name, SomeSeconds, Units
from fairlead.shapes.limit import LimitBody


class TypeBody(Body, frozen=True):
    """Defaults of all tasks of a type."""

    limits: Annotated[dict[Name, Units], Meta(max_length=8)] = field(default_factory=dict)
    required_capabilities: Annotated[list[Name], Meta(max_length=16)] = field(default_factory=list)
    timeout_seconds: SomeSeconds | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    lease_seconds: SomeSeconds | None = None


class DeclareBody(Body, frozen=True):
    """The task types, limits and pipelines that the code of a worker declares."""

    types: Annotated[dict[Name, TypeBody], Meta(max_length=1000)] = field(default_factory=dict)
    limits: Annotated[dict[Name, LimitBody], Meta(max_length=1000)] = field(default_factory=dict)
    #: steps, as in the settings file
    pipelines: Annotated[dict[Name, list[Any]], Meta(max_length=1000)] = field(default_factory=dict)


class ConfirmBody(Body, frozen=True):
    """Names of task types and pipelines that the code of a process has declared."""

    types: Annotated[list[Name], Meta(max_length=1000)] = field(default_factory=list)
    pipelines: Annotated[list[Name], Meta(max_length=1000)] = field(default_factory=list)


class DeclareAnswer(Answer):
    """How often a worker must send heartbeats, and how long its leases last."""

    heartbeat_seconds: float
    lease_seconds: float


class ConfirmAnswer(Answer):
    all_known: bool  # false: declare them again
