"""The session of a browser."""

from typing import Annotated

from msgspec import Meta, field

from fairlead.shapes.base import Answer, Body, Moment


class LoginBody(Body, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=200)]


class SessionAnswer(Answer):
    """The caller. If `needs_key`, nobody is logged in, and all but that is null or empty."""

    needs_key: bool
    name: str | None = None
    scopes: list[str] = field(default_factory=list)
    tenant: str | None = None
    namespace: str | None = None
    #: that a header may name; only without keys, because a key is for one
    namespaces: list[str] = field(default_factory=list)
    version: str | None = None
    csrf_token: str | None = None  # for the header X-CSRF-Token; null: none is needed
    ends_at: Moment | None = None  # of the session; null: there is none


class LogoutAnswer(Answer):
    logged_out: bool
