"""Keys that tests ask with."""

from dataclasses import dataclass

from fairlead.model.key import SCOPES
from fairlead.store.store import Store
from tests.api_keys import usable_key
from tests.waiting import wait_until


def bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


@dataclass(frozen=True)
class Keys:
    store: Store

    async def make(
        self,
        *scopes: str,
        tenant: str | None = None,
        seconds: float | None = None,
        max_priority: str | None = None,
    ) -> str:
        new = await self.store.api_keys.create(
            "somebody",
            scopes or SCOPES,
            tenant=tenant,
            expires_seconds=seconds,
            max_priority=max_priority,
        )
        return new.key_text

    async def expired(self) -> str:
        key = await self.make(seconds=0.001)

        async def has_expired() -> bool:
            return await usable_key(self.store, key) is None

        await wait_until(has_expired)
        return key

    async def revoked(self) -> str:
        key = await self.make()
        await self.store.api_keys.revoke(key.split("_")[1])
        return key
