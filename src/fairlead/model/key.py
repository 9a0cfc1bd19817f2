"""An API key without its secret, and a new one with it."""

from dataclasses import dataclass, field
from typing import Literal

from fairlead.settings.rates import rate_text

SCOPES = ("submit", "read", "cancel", "worker", "admin", "metrics")


KeyState = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret. Times are ms of the store's clock; `state` is that of when it was read."""

    id: str
    name: str
    scopes: tuple[str, ...]
    tenant: str | None
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    replaces: str | None = None
    interval_us: int | None = None  # in which it may submit one task; None: as the settings say
    burst: int | None = None  # tasks at once
    max_priority: str | None = None  # of its tasks; None: any
    state: KeyState = "active"

    @property
    def rate(self) -> str | None:
        return None if self.interval_us is None else rate_text(self.interval_us)


@dataclass(frozen=True, slots=True)
class NewKey:
    """The only value that holds the whole key: show it once, then forget it."""

    key_text: str = field(repr=False)
    api_key: ApiKey
