"""API keys as a gateway finds them that remembers none."""

from fairlead.model.key import ApiKey
from fairlead.store.store import Store


async def usable_key(store: Store, key_text: str) -> ApiKey | None:
    """The key with this text, if it may be used now."""
    seen = await store.api_keys.find(key_text)
    return seen.api_key if seen and seen.is_open(0) else None
