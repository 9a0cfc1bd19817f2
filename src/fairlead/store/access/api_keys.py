"""API keys: who may do what. The secret of a key is shown once, and the store knows only its digest."""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead import errors
from fairlead.checks import check_seconds, check_short
from fairlead.model.key import SCOPES, ApiKey, NewKey
from fairlead.model.limit import limit_arguments
from fairlead.model.priority import NAMED_PRIORITIES
from fairlead.settings import Rate
from fairlead.settings.processes import NAMESPACE
from fairlead.store.connection import pack
from fairlead.store.keys import KEY_CHANNEL
from fairlead.store.replies import expect_ok
from fairlead.store.session import Part
from fairlead.store.subscription import Listener

LETTERS = string.ascii_lowercase + string.digits
ID = re.compile(r"[a-z0-9]{8}")
# After the secret comes the namespace, unless it is `default`, so that a gateway of several finds the key.
KEY = re.compile(rf"flk_({ID.pattern})_([A-Za-z0-9_-]{{43}})(?:\.({NAMESPACE.pattern}))?")
NOBODY = "0" * 64  # the digest of no secret, compared with where there is no key


@dataclass(frozen=True, slots=True)
class Seen:
    """A key as it was at this time."""

    api_key: ApiKey
    now: int

    def is_open(self, later_ms: float) -> bool:
        expires = self.api_key.expires_at
        return self.api_key.revoked_at is None and (expires is None or self.now + later_ms < expires)


class ApiKeys(Part):
    async def create(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        tenant: str | None = None,
        expires_seconds: float | None = None,
        rate: Rate | None = None,
        max_priority: str | None = None,
    ) -> NewKey:
        """A key that may do this, for tasks of this tenant (None: of all), until it expires (None: never).

        `rate` is how many tasks it may submit (None: as the settings say), `max_priority` the best priority
        that they may have (None: any).
        """
        if not name:
            raise errors.InvalidInput("name", "name its owner or its use")
        check_short("name", name)
        check_short("tenant", tenant)
        check_seconds("expires_seconds", expires_seconds)
        if max_priority is not None and max_priority not in NAMED_PRIORITIES:
            raise errors.InvalidInput("max_priority", f"{max_priority!r} is not one of high, medium, low")
        _, _, interval, burst = limit_arguments("rate", rate) if rate else (None,) * 4
        facts = {
            "name": name,
            "scopes": ",".join(_checked(scopes)),
            "tenant": tenant,
            "interval": interval,
            "burst": burst,
            "max_priority": max_priority,
            "lifetime": expires_seconds and max(1, round(expires_seconds * 1000)),
        }
        said = {fact: value for fact, value in facts.items() if value is not None}
        return await self._make("create_key", pack(said))

    async def rotate(self, key_id: str, overlap_seconds: float) -> NewKey:
        """A key with the same rights and the same length of life; the old one ends after the overlap."""
        check_seconds("overlap_seconds", overlap_seconds, zero=True)
        return await self._make("rotate_key", _known_form(key_id), round(overlap_seconds * 1000))

    async def _make(self, act: str, *arguments: bytes | str | int) -> NewKey:
        while True:
            key_id, secret = _new_id(), secrets.token_urlsafe(32)
            made = expect_ok(await self._session.ask(act, key_id, digest_of(secret), *arguments), "taken")
            if made["answer"] != "taken":  # one of 36^8 ids: the next one is free
                text = f"flk_{key_id}_{secret}{self._session.ending}"
                return NewKey(text, _api_key(key_id, made["fields"], made["now"]))

    async def revoke(self, key_id: str) -> None:
        """Takes effect at once."""
        await self._session.run("revoke_key", _known_form(key_id))

    async def all(self) -> list[ApiKey]:
        """Sorted by when they end; a key that has ended is listed for at least 90 days."""
        found: dict[str, tuple[float, ApiKey]] = {}  # a key may be on two pages
        cursor = ""
        while cursor != "0":
            answer = await self._session.run("show_keys", "", cursor or 0)
            for row in answer["keys"]:
                found[row["id"]] = row["ends"], _api_key(row["id"], row["fields"], answer["now"])
            cursor = answer["cursor"]
        return [key for _, key in sorted(found.values(), key=lambda pair: (pair[0], pair[1].id))]

    async def get(self, key_id: str) -> ApiKey:
        answer = await self._session.run("show_keys", _known_form(key_id), 0)
        if not answer["keys"]:
            raise errors.UnknownKey()
        return _api_key(key_id, answer["keys"][0]["fields"], answer["now"])

    async def any(self) -> bool:
        """Whether there was ever a key: from then on a key is required, even when all have ended."""
        (exists,) = await self._connection.read(("EXISTS", self._connection.keys.key("keys")))
        return bool(exists)

    async def find(self, key_text: str) -> Seen | None:
        """The key with this text, whether it may be used or not.

        An unknown id takes as long as a wrong secret, so that guessing reveals nothing about the ids.
        """
        parts = KEY.fullmatch(key_text)
        if not parts:
            return None
        key_id, secret, namespace = parts.groups()
        answer = await self._session.run("show_keys", key_id, 0)
        is_here = answer["keys"] and namespace in (None, self._connection.keys.namespace)
        now, facts = answer["now"], answer["keys"][0]["fields"] if is_here else {}
        if not hmac.compare_digest(facts.get("digest", NOBODY), digest_of(secret)):
            return None
        return Seen(_api_key(key_id, facts, now), now)

    async def note_use(self, key_id: str) -> None:
        await self._session.run("use_key", key_id)

    async def spend(self, key_id: str, tasks: int, usual: Rate | None) -> None:
        """Takes units of the key's own rate, or of the usual one; raises RateLimited and takes none."""
        interval, burst = (usual.interval_us, usual.burst) if usual else ("", "")
        answer = await self._session.ask("spend_key", key_id, tasks, interval, burst)
        if expect_ok(answer, "over_burst")["answer"] == "over_burst":
            most = answer["burst"]
            raise errors.InvalidInput("tasks", f"{tasks} at once, this key may send at most {most}")

    def listener(self, changed: Callable[[], None]) -> Listener:
        """Calls `changed` when a key was made or changed, and when such a change may have been missed."""
        channel = self._connection.keys.key(KEY_CHANNEL)
        return Listener(self._connection.subscriber, channel, lambda _: changed(), changed)


def namespace_of(key_text: str) -> str | None:
    """The namespace that a key, or a ticket, names; None: it names none."""
    return key_text.partition(".")[2] or None


def id_of(key_text: str) -> str:
    """The id in a key, or the id itself: somebody who finds a key lying about wants to revoke it."""
    parts = KEY.fullmatch(key_text)
    return parts[1] if parts else key_text


def _known_form(key_id: str) -> str:
    """Text that cannot be an id belongs to no key."""
    if not ID.fullmatch(key_id):
        raise errors.UnknownKey()
    return key_id


def _checked(scopes: Iterable[str]) -> list[str]:
    chosen = [scopes] if isinstance(scopes, str) else list(scopes)
    for scope in chosen:
        if scope not in SCOPES:
            raise errors.InvalidInput("scopes", f"{scope!r} is unknown: use some of {', '.join(SCOPES)}")
    if not chosen:
        raise errors.InvalidInput("scopes", f"name at least one of {', '.join(SCOPES)}")
    return [scope for scope in SCOPES if scope in chosen]


def _new_id() -> str:
    """Letters and digits only: it cannot look like an option, and a double click selects all of it."""
    return "".join(secrets.choice(LETTERS) for _ in range(8))


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _api_key(key_id: str, facts: Mapping[str, Any], now: int) -> ApiKey:
    """Numbers are stored as text."""

    def number(name: str) -> int | None:
        return int(facts[name]) if name in facts else None

    expires, revoked = number("expires"), number("revoked")
    return ApiKey(
        id=key_id,
        name=facts["name"],
        scopes=tuple(facts["scopes"].split(",")),
        tenant=facts.get("tenant"),
        created_at=int(facts["created"]),
        expires_at=expires,
        revoked_at=revoked,
        last_used_at=number("last_used"),
        replaces=facts.get("replaces"),
        interval_us=number("interval"),
        burst=number("burst"),
        max_priority=facts.get("max_priority"),
        state="revoked" if revoked else "expired" if expires and expires <= now else "active",
    )
