"""Sessions of browsers: each was opened with a key. The store has only a digest of its secret."""

import secrets
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead.settings.processes import MOST_NAMESPACE
from fairlead.store.access.api_keys import digest_of
from fairlead.store.session import Part

SESSION_SECONDS = 12 * 3600
LONGEST_SECRET = 100 + MOST_NAMESPACE
PREFIX = "fls_"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    secret: str = field(repr=False)
    key_id: str
    ends_at: int  # ms of the store's clock


class BrowserSessions(Part):
    """Kept as tickets are, but read any number of times until they end or the browser logs out."""

    async def open(self, key_id: str) -> str:
        """The secret of a new session; it grants what the key grants, as long as that is valid."""
        secret = PREFIX + secrets.token_urlsafe(32) + self._session.ending
        holder = msgspec.json.encode(key_id)
        await self._session.run("make_ticket", digest_of(secret), holder, SESSION_SECONDS * 1000)
        return secret

    async def find(self, secret: str) -> BrowserSession | None:
        answer = await self._take(secret, keep=True)
        if not answer.get("holder"):
            return None
        key_id = msgspec.json.decode(answer["holder"], type=str)
        return BrowserSession(secret, key_id, answer["ends"])

    async def close(self, secret: str) -> None:
        await self._take(secret, keep=False)

    async def _take(self, secret: str, *, keep: bool) -> dict[str, Any]:
        if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET:
            return {}
        return await self._session.run("take_ticket", digest_of(secret), int(keep))
