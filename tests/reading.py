"""What tests read behind the store's back."""

from typing import Any

from fairlead.store.store import Store


async def events_of(store: Store) -> list[dict[str, str]]:
    """The outbox, oldest first."""
    entries: Any = await store.connection.client.xrange(store.connection.keys.key("events"))
    return [{name.decode(): value.decode() for name, value in entry.items()} for _, entry in entries]


async def keys_of(store: Store) -> list[str]:
    client, prefix = store.connection.client, store.connection.keys.prefix
    return sorted([key.decode() async for key in client.scan_iter(match=prefix + "*", count=1000)])
