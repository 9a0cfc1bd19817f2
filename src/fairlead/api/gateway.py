"""What every request shares: the store, the keys, and who may do what."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from fairlead.api.gathering import Gatherer
from fairlead.api.problems import Forbidden, ForeignOrigin, Unauthorized, WrongHost
from fairlead.clock import monotonic
from fairlead.errors import UnknownTask
from fairlead.priority_service import PriorityService
from fairlead.store.api_keys import ApiKey, KeyRing
from fairlead.store.store import Store
from fairlead.task import Task

Scope = Literal["submit", "read", "cancel", "worker", "admin", "metrics"]
SCOPES: tuple[Scope, ...] = ("submit", "read", "cancel", "worker", "admin", "metrics")
LOOK_SECONDS = 1.0  # between two looks whether there is a key by now


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. Without a tenant it sees everything."""

    name: str
    scopes: frozenset[str]
    tenant: str | None = None


ANYBODY = Identity("anybody", frozenset(SCOPES))  # while no key is configured
NOBODY = Identity("nobody", frozenset())  # on routes that are open to everybody


@dataclass(slots=True)
class Gateway:
    store: Store
    gatherer: Gatherer
    keys: KeyRing
    priorities: PriorityService | None
    asks_for_keys: bool
    hosts: frozenset[str] | None = None  # names this server answers to; None: any
    sites: frozenset[str] = frozenset()  # names under which browsers reach it, as the settings say
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # calls that wait are to end
    _looked_at: float = 0.0

    def check_caller(self, headers: dict[str, str]) -> None:
        """A page of another site may make a browser ask here: under its own name (DNS rebinding), or by a
        form, an image or a script, which need no consent of ours (CSRF)."""
        host = headers.get("host", "")
        if self.hosts is not None and host_name(host) not in self.hosts:
            raise WrongHost()
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise ForeignOrigin()
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            raise ForeignOrigin()

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            site = urlsplit(origin)
            return site.netloc.lower() == host.lower() or site.hostname in self.sites
        except ValueError:
            return False

    async def identify(self, authorization: str | None) -> Identity:
        if not await self._must_ask():
            return ANYBODY
        kind, _, key_text = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not key_text:
            raise Unauthorized()
        key = await self.keys.check(key_text.strip())
        if key is None:
            raise Unauthorized("This key is unknown, expired or revoked: use another one.")
        return identity_of(key)

    async def _must_ask(self) -> bool:
        """From the first key on, which may be made while this server runs."""
        if not self.asks_for_keys and monotonic() - self._looked_at > LOOK_SECONDS:
            self.asks_for_keys = await self.store.api_keys.any()
            self._looked_at = monotonic()
        return self.asks_for_keys

    async def own_task(self, who: Identity, task_id: str) -> Task:
        """A task of the caller's tenant; another's is as unknown as one that never was."""
        task = await self.store.get(task_id)
        if who.tenant is not None and task.tenant != who.tenant:
            raise UnknownTask()
        return task


def host_name(host: str) -> str:
    """Without the port: `[::1]:8000` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def identity_of(key: ApiKey) -> Identity:
    return Identity(key.name, frozenset(key.scopes), key.tenant)


def check_scope(who: Identity, scope: Scope) -> None:
    if scope not in who.scopes:
        raise Forbidden(f"This key has not the scope {scope!r}: use one that has it.")


def check_all_tenants(who: Identity) -> None:
    if who.tenant is not None:
        raise Forbidden("This concerns all tenants, and the key is one tenant's: use a key without a tenant.")
