"""The numbers that acts decide by, stored in the namespace so that they are the same for all processes."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from fairlead.errors import NamespaceNotOpen, StoreFault
from fairlead.log.events import EventLog
from fairlead.model.policy import NAMESPACE, Number, PolicyValue
from fairlead.settings import Settings
from fairlead.settings.sources import Sources
from fairlead.settings.tiers import VICTIM, written
from fairlead.store.access.audit import Audit
from fairlead.store.epochs import new_token
from fairlead.store.keys import POLICY_CHANNEL
from fairlead.store.session import Part, Session
from fairlead.store.subscription import Listener

CRASH_LIMIT = 3  # a task that lost this many workers is quarantined

#: The setting of each number. Seconds are stored as whole milliseconds.
SECONDS = {
    "low_to_medium": "promotion.low_to_medium_seconds",
    "low_to_high": "promotion.low_to_high_seconds",
    "medium_to_high": "promotion.medium_to_high_seconds",
    "hold_after": "scheduling.hold_after_seconds",
    "hold_for": "scheduling.hold_seconds",
    "grace": "lease.grace_seconds",
    "retry_base": "retry.base_seconds",
    "retry_max": "retry.max_seconds",
    "finished_ttl": "retention.finished_seconds",
    "live_ttl": "retention.live_seconds",
    "least_ttl": "retention.least_seconds",
    "dead_ttl": "retention.dead_seconds",
    "idempotency_ttl": "retention.idempotency_seconds",
    "max_wait_high": "admission.max_wait_seconds.high",
    "max_wait_medium": "admission.max_wait_seconds.medium",
    "max_wait_low": "admission.max_wait_seconds.low",
    "worker_ttl": "worker.heartbeat_seconds x worker.missed_heartbeats",
}
COUNTS = {
    "budget": "promotion.budget",
    "started_first": "scheduling.started_jobs_first",
    "max_events": "outbox.max_events",
    "max_queued": "admission.max_queued",
    "max_queued_per_user": "admission.max_queued_per_user",
    "max_task_types": "admission.max_task_types",
    "max_finished": "retention.max_finished",
    "max_finished_bytes": "retention.max_finished_bytes",
    "max_dead": "retention.max_dead",
    "log_transitions": "log.transitions",
}
#: Kept as text, which acts read.
TEXTS = {"tiers": "tiers"}
SETTINGS = {**SECONDS, **COUNTS, **TEXTS, "victim_random": "tiers.victim"}
PUT_IN_FORCE = "`fairlead config apply`, or a server started with --govern, puts these settings in force"

Stored = dict[str, int | float | str]
log = EventLog("fairlead.store")


class Notice(msgspec.Struct):
    """What a process reports to the servers: by setting, the number in force and its own."""

    process: str
    host: str
    values: dict[str, tuple[Number, Number]]


def stored_policy(settings: Settings) -> Stored:
    """Times in whole milliseconds."""
    derived = {"low_to_high": settings.promotion.low_to_high, "worker_ttl": settings.worker_ttl_ms / 1000}
    seconds = {
        name: derived[name] if name in derived else attrgetter(key)(settings) for name, key in SECONDS.items()
    }
    counts = {name: int(attrgetter(key)(settings)) for name, key in COUNTS.items()}
    return (
        {name: max(0, round(value * 1000)) for name, value in seconds.items()}
        | counts
        | {"crash_limit": CRASH_LIMIT}
        | {"tiers": written(settings.tiers), "victim_random": int(settings.tiers.get(VICTIM) == "random")}
    )


class Policy(Part):
    """The policy of one namespace, as its acts use it, beside the settings of this process."""

    def __init__(self, session: Session, audit: Audit) -> None:
        super().__init__(session)
        self._audit = audit
        self._seen: Stored = {}
        self._process = new_token()
        self.sources = Sources()  # what set the settings of this process, where it is known

    async def stored(self) -> Stored:
        """Empty before the namespace is opened."""
        connection = self._connection
        packed = await connection.call("HGET", connection.keys.meta, "policy")
        try:
            return msgspec.msgpack.decode(packed, type=Stored) if packed else {}
        except msgspec.MsgspecError:
            raise StoreFault(
                f"Namespace {connection.keys.namespace!r} was edited: its policy cannot be decoded. Run "
                "`fairlead doctor`."
            ) from None

    async def values(self) -> list[PolicyValue]:
        """What is in force, by the names of the settings."""
        stored = await self.stored()
        if not stored:
            raise NamespaceNotOpen()
        return [*self._compared(stored)]

    async def report(self, before: Stored, *, governs: bool) -> None:
        """After opening: logs what this process changed, or what it would have to change."""
        after = self._seen = await self.stored()
        if governs:
            if changed := _changes(before, after):
                self._log_changes(changed)
                old, new = ({setting: pair[i] for setting, pair in changed.items()} for i in range(2))
                actor = f"{socket.gethostname()} (settings)"
                await self._audit.record(actor, "govern", self._connection.keys.namespace, old, new)
            return
        if differing := [value for value in self._compared(after) if value.differs]:
            for value in differing:
                log.warning(
                    "policy_differs",
                    setting=value.setting,
                    in_force=value.value,
                    here=value.local_value,
                    set_by=value.local_source,
                    next_step=PUT_IN_FORCE,
                )
            await self._notify_servers(differing)

    async def _notify_servers(self, differing: Iterable[PolicyValue]) -> None:
        """If this user of the store may not publish, only our own log has it."""
        values = {value.setting: (value.value, value.local_value) for value in differing}
        notice = Notice(process=self._process, host=socket.gethostname(), values=values)
        await self._connection.attempt("PUBLISH", self._channel, msgspec.json.encode(notice))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """For a server: logs what other processes report."""
        listener = Listener(self._connection.subscriber, self._channel, self._receive, lambda: None)
        listener.start()
        try:
            yield
        finally:
            await listener.stop()

    def _receive(self, packed: bytes) -> None:
        with contextlib.suppress(msgspec.MsgspecError):  # of a version that reports something else
            notice = msgspec.json.decode(packed, type=Notice)
            if notice.process != self._process:
                for setting, (in_force, there) in notice.values.items():
                    log.warning(
                        "policy_differs_elsewhere",
                        host=notice.host,
                        setting=setting,
                        in_force=in_force,
                        there=there,
                    )

    @property
    def _channel(self) -> str:
        return self._connection.keys.key(POLICY_CHANNEL)

    async def watch(self) -> None:
        """Logs what another process has changed since the last look."""
        after = await self.stored()
        if after:  # else it is lost, and that is reported
            self._log_changes(_changes(self._seen, after))
            self._seen = after

    def _log_changes(self, changes: Mapping[str, tuple[Number, Number]]) -> None:
        for setting, (before, after) in changes.items():
            log.warning("policy_changed", setting=setting, before=before, after=after)

    def _compared(self, stored: Stored) -> Iterator[PolicyValue]:
        local, usual = stored_policy(self._session.settings), stored_policy(Settings())
        for name, setting in sorted(SETTINGS.items(), key=itemgetter(1)):
            if name in stored:
                unset = "default" if local[name] == usual[name] else "settings"
                source = self._source(setting) or unset
                yield PolicyValue(
                    setting=setting,
                    value=shown(name, stored[name]),
                    source=source if stored[name] == local[name] else NAMESPACE,
                    local_value=shown(name, local[name]),
                    local_source=source,
                )

    def _source(self, setting: str) -> str | None:
        """What set it here; of two keys that make one number, the first that is set."""
        places = (self.sources.place(tuple(key.split("."))) for key in setting.split(" x "))
        return next(filter(None, places), None)


def shown(name: str, stored: float | str) -> Number:
    """What is stored, as the settings have it."""
    if name == "victim_random":
        return "random" if stored else "youngest"
    if isinstance(stored, str):
        return stored
    if name in SECONDS:
        return stored / 1000
    return bool(stored) if name == "started_first" else int(stored)


def _changes(before: Stored, after: Stored) -> dict[str, tuple[Any, Any]]:
    """By setting: the number before and after."""
    return {
        setting: (shown(name, before[name]), shown(name, after[name]))
        for name, setting in SETTINGS.items()
        if name in before and name in after and before[name] != after[name]
    }
