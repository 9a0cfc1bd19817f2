"""API keys, without their secrets."""

from fairlead.model.key import ApiKey
from fairlead.shapes.base import Moment, Shape


class KeyAnswer(Shape[ApiKey]):
    id: str
    name: str
    state: str
    scopes: list[str]
    tenant: str | None
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None
    replaces: str | None
    rate: str | None
    max_priority: str | None
