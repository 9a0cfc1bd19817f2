"""API keys, without and with their secrets, and the identity that a caller has by one."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from fairlead.settings.rates import rate_text

Scope = Literal["submit", "read", "cancel", "worker", "admin", "metrics"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
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

    @property
    def identity(self) -> "Identity":
        has_rate = self.interval_us is not None
        return Identity(self.id, self.name, self.scopes, self.tenant, has_rate, self.max_priority)


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of a request. Without a tenant it sees everything."""

    key_id: str | None  # None: no key was required
    name: str
    scopes: tuple[str, ...]
    tenant: str | None = None
    has_rate: bool = False  # a rate of its own, for what it submits
    max_priority: str | None = None  # of what it submits; None: any


@dataclass(frozen=True, slots=True)
class NewKey:
    """The only value that holds the whole key: show it once, then forget it."""

    key_text: str = field(repr=False)
    api_key: ApiKey
