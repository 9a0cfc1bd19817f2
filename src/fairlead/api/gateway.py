"""What all requests share: the store, the keys, and the checks of access."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fairlead.api.batching import SubmitBatcher
from fairlead.api.browsers import Browsers, secret_in
from fairlead.api.budget import Budget
from fairlead.api.failed_keys import FailedKeys
from fairlead.api.live.connections import Connections
from fairlead.api.live.overviews import Overviews
from fairlead.api.other_limits import OtherLimits
from fairlead.api.polls import Polls
from fairlead.api.priority_service import PriorityService
from fairlead.api.problems import Forbidden, ForeignOrigin, Unauthorized, WrongHost
from fairlead.api.readiness import Readiness
from fairlead.api.simulating import Simulations
from fairlead.api.tally import Tally
from fairlead.clock import monotonic
from fairlead.errors import (
    FairleadError,
    StoreFault,
    StoreLost,
    StoreUnavailable,
    UnknownKey,
    UnknownNamespace,
)
from fairlead.log.events import EventLog
from fairlead.model.key import SCOPES, ApiKey, Identity, Scope
from fairlead.settings import Rate
from fairlead.settings.processes import DEFAULT_NAMESPACE
from fairlead.store.access.api_keys import namespace_of
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.store import Store

LOOK_SECONDS = 1.0  # between two checks whether a key exists by now
MAKE_KEY = "make one with `fairlead key create`"
NAMESPACE = "fairlead-namespace"  # the header in which a request without a key names it

log = EventLog("fairlead.api")

ANYBODY = Identity(None, "anybody", SCOPES)  # while no key is configured
NOBODY = Identity(None, "nobody", ())  # on routes that are open to everybody


@dataclass(slots=True)
class Gateway:
    """The gateway of one namespace; `family` are those of all that this server process serves, by name."""

    store: Store
    batcher: SubmitBatcher
    polls: Polls
    keys: KeyRing
    priorities: PriorityService | None
    asks_for_keys: bool
    failed_keys: FailedKeys
    connections: Connections
    submit_rate: Rate | None = None  # of keys without a rate; None: no limit
    hosts: frozenset[str] | None = None  # names that this server answers to; None: any
    sites: frozenset[str] = frozenset()  # names under which browsers reach it, as the settings say
    readiness: Readiness = field(default_factory=Readiness)
    budget: Budget = field(default_factory=Budget)
    uploads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(16))  # of blobs, at once
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # long polls are to end
    family: "dict[str, Gateway]" = field(default_factory=dict)
    browsers: Browsers = field(init=False)
    overviews: Overviews = field(init=False)
    simulations: Simulations = field(init=False)
    tally: Tally = field(init=False)
    other_limits: OtherLimits = field(init=False)
    _looked_at: float = 0.0
    _looking: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.browsers = Browsers(self.store)
        self.overviews = Overviews(self.store)
        self.simulations = Simulations(self.store)
        self.tally, self.other_limits = Tally(self.store), OtherLimits(self.store)

    @property
    def logs_requests(self) -> bool:
        return self.store.settings.log.access

    @property
    def namespace(self) -> str:
        return self.store.connection.keys.namespace

    def of_request(self, headers: dict[str, str], ticket: str | None = None) -> "Gateway":
        """The gateway of the namespace that the key, the ticket or the session of a browser names, else the
        header, else this one."""
        key = ticket or key_in(headers.get("authorization")) or secret_in(headers)
        return self.of_key(key) if key else self.family.get(headers.get(NAMESPACE, ""), self)

    def of_key(self, key: str) -> "Gateway":
        return self.family.get(namespace_of(key) or DEFAULT_NAMESPACE, self)

    def check_namespace(self, headers: dict[str, str], ticket: str | None = None) -> None:
        """Raises UnknownNamespace if the request names another one than that of this gateway."""
        here, key = self.namespace, ticket or key_in(headers.get("authorization"))
        for name in (headers.get(NAMESPACE), key and namespace_of(key)):
            if name and name != here:
                raise UnknownNamespace()

    def check_caller(self, headers: dict[str, str]) -> None:
        """A page of another site can make a browser send requests here: under its own name (DNS rebinding)
        or by a form, an image or a script, which need no consent from this server (CSRF)."""
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

    async def identify(
        self, headers: dict[str, str], address: str, *, is_safe: bool | None = None
    ) -> Identity:
        """A valid key is accepted however often others failed from the same address.

        `is_safe`: whether the request only reads; None: it must bring a key, and no session of a browser.
        """
        try:
            return await self.caller_of(headers, is_safe=is_safe)
        except Unauthorized:
            self.failed_keys.note(address)
            raise

    async def caller_of(self, headers: dict[str, str], *, is_safe: bool | None) -> Identity:
        """As `identify`, but a failure does not count."""
        self.store.connection.membership.check()  # keys may be among what was lost
        if not await self._must_ask():
            return ANYBODY
        authorization = headers.get("authorization")
        if authorization is None and is_safe is not None and secret_in(headers):
            return await self._in_session(await self.browsers.key_id(headers, is_safe=is_safe))
        return await self._identify(authorization)

    async def _in_session(self, key_id: str) -> Identity:
        try:
            key = await self.store.api_keys.get(key_id)
        except UnknownKey:
            raise Unauthorized("The key of this session was deleted: log in again.") from None
        if key.state != "active":
            raise Unauthorized(f"The key of this session is {key.state}: log in with another one.")
        return key.identity

    async def _identify(self, authorization: str | None) -> Identity:
        key_text = key_in(authorization)
        if not key_text:
            raise Unauthorized()
        return (await self.key_of(key_text)).identity

    async def key_for_login(self, key_text: str, address: str) -> ApiKey:
        """A failure counts as that of a request without a valid key."""
        self.store.connection.membership.check()
        try:
            return await self.key_of(key_text)
        except Unauthorized:
            self.failed_keys.note(address)
            raise

    async def key_of(self, key_text: str) -> ApiKey:
        key = await self.keys.check(key_text)
        if key is None:
            raise Unauthorized("This key is unknown, expired or revoked: use another one.")
        return key

    async def recognise(self, authorization: str | None) -> Identity:
        """The caller of a route that needs no key; an invalid key counts as none."""
        try:
            return await self._identify(authorization)
        except (Unauthorized, StoreUnavailable, StoreFault):  # while keys cannot be checked, none is believed
            return NOBODY

    def is_operator(self, caller: Identity) -> bool:
        """Whether they may see details of the server itself. Where no key is required, everybody may."""
        return not self.asks_for_keys or (caller.key_id is not None and caller.tenant is None)

    async def identify_by_ticket(self, ticket: str, address: str) -> Identity:
        self.store.connection.membership.check()
        holder = await self.store.tickets.take(ticket)
        if holder is None or not await self.may_stay(holder.key_id):
            self.failed_keys.note(address)
            raise Unauthorized("This ticket is unknown, used or too old: get another one.")
        return holder

    async def may_stay(self, key_id: str | None, session: str | None = None) -> bool:
        """Whether a caller with this key, or with none, would be accepted now; `session`: in this one."""
        if key_id is None:
            return not await self._must_ask()
        if session and not await self.browsers.is_open(session):
            return False
        try:
            return (await self.store.api_keys.get(key_id)).state == "active"
        except UnknownKey:
            return False

    async def _must_ask(self) -> bool:
        """Keys are required from the first one on, which may be created while this server runs.

        In all namespaces that it serves: one without a key would be open to everybody.
        """
        if not self.asks_for_keys and monotonic() - self._looked_at > LOOK_SECONDS:
            if self._looking is None or self._looking.done():
                # a separate task: the first caller may disconnect, and others wait for the same check
                self._looking = asyncio.create_task(self._look_for_keys())
            await asyncio.shield(self._looking)
        return self.asks_for_keys

    async def _look_for_keys(self) -> None:
        if await self._any_keys():
            for gateway in (self, *self.family.values()):
                gateway.asks_for_keys = True
        self._looked_at = monotonic()

    async def _any_keys(self) -> bool:
        """Raises what is wrong with this namespace; others that cannot be asked do not count."""
        others = [one.store.api_keys.any() for one in self.family.values() if one is not self]
        own, *found = await asyncio.gather(self.store.api_keys.any(), *others, return_exceptions=True)
        for answer in (own, *(one for one in found if not isinstance(one, FairleadError))):
            if isinstance(answer, BaseException):
                raise answer
        return own is True or True in found

    async def report_loss(self, problem: StoreLost | None) -> None:
        """The store has lost data, or (None) an operator has accepted the loss."""
        if problem:
            self.readiness.refuse(problem.code, str(problem))
            return
        self.readiness.clear(StoreLost.code)
        if self.asks_for_keys and not await self._any_keys():
            log.error("keys_lost", problem="no API key is left, so no caller is accepted", next_step=MAKE_KEY)

    async def spend(self, caller: Identity, tasks: int) -> None:
        """Takes this number of tasks from the rate of the caller's key, before anything is submitted."""
        if caller.key_id and (caller.has_rate or self.submit_rate):
            try:
                await self.store.api_keys.spend(caller.key_id, tasks, self.submit_rate)
            except UnknownKey:  # deleted since it was checked
                raise Unauthorized() from None


def key_in(authorization: str | None) -> str | None:
    """The key of an Authorization header, if it has one."""
    kind, _, key_text = (authorization or "").partition(" ")
    return key_text.strip() or None if kind.lower() == "bearer" else None


def host_name(host: str) -> str:
    """Without the port: `[::1]:8000` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def check_scope(caller: Identity, scope: Scope) -> None:
    if scope not in caller.scopes:
        raise Forbidden(f"This key lacks the scope {scope!r}: use one that has it.")


def check_all_tenants(caller: Identity) -> None:
    if caller.tenant is not None:
        raise Forbidden("This affects all tenants, and the key belongs to one: use a key without a tenant.")
