"""API keys, remembered for a moment: most requests come with one that was seen just now."""

import contextlib
from typing import Self

from fairlead import errors
from fairlead.background import TaskSet, cancel_all
from fairlead.clock import monotonic
from fairlead.model.key import ApiKey
from fairlead.store.access.api_keys import ApiKeys, Seen, digest_of

MOST_REMEMBERED = 10_000
LONGEST_MEMORY = 1.0  # seconds
USE_EVERY = 60.0  # seconds between two notes that a key is in use


class KeyRing:
    """Checks keys without asking the store each time. `async with KeyRing(store.api_keys) as keys:`

    What it found it remembers for at most a second, and only while it hears of every change.
    """

    def __init__(self, api_keys: ApiKeys, cache_seconds: float = LONGEST_MEMORY) -> None:
        self._api_keys = api_keys
        self._cache_seconds = min(cache_seconds, LONGEST_MEMORY)
        # By the digest of the text. Texts that are no key are kept too: a wrong secret like an unknown id.
        self._remembered: dict[str, tuple[float, Seen | None]] = {}
        self._changes = 0
        self._noted: dict[str, float] = {}
        self._noting = TaskSet()
        self._listener = api_keys.listener(self.forget)

    async def __aenter__(self) -> Self:
        self._listener.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.stop()
        self.forget()
        await cancel_all(*self._noting)

    async def check(self, key_text: str) -> ApiKey | None:
        """The key with this text, if it may be used now."""
        since, seen = await self._find(key_text)
        if not seen or not seen.is_open((monotonic() - since) * 1000):
            return None
        self._note_use(seen.api_key.id)
        return seen.api_key

    def forget(self) -> None:
        self._changes += 1
        self._remembered.clear()

    async def _find(self, key_text: str) -> tuple[float, Seen | None]:
        digest, now = digest_of(key_text), monotonic()
        known = self._remembered.get(digest)
        if known and now - known[0] < self._cache_seconds:
            return known
        changes = self._changes
        known = (now, await self._api_keys.find(key_text))
        # A revocation that arrived meanwhile may be newer than the answer, which is then not kept.
        if self._listener.subscribed and changes == self._changes:
            self._remembered.pop(digest, None)  # so that it is the newest
            self._remembered[digest] = known
            if len(self._remembered) > MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
        return known

    def _note_use(self, key_id: str) -> None:
        now = monotonic()
        if now - self._noted.get(key_id, -USE_EVERY) >= USE_EVERY:
            self._noted[key_id] = now
            self._noting.start(self._note(key_id))

    async def _note(self, key_id: str) -> None:
        with contextlib.suppress(errors.FairleadError):  # the next minute will do
            await self._api_keys.note_use(key_id)
