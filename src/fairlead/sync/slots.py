"""Slots on an object store, for code without an event loop."""

from fairlead import slots
from fairlead.slots.store import SKEW_SECONDS
from fairlead.sync.forwarding import blocking, held
from fairlead.sync.opened import Opened


class SlotStore(Opened[slots.SlotStore]):
    """As `fairlead.slots.SlotStore`. All threads share one."""

    def __init__(self, url: str, *, max_skew_seconds: float = SKEW_SECONDS) -> None:
        super().__init__(slots.SlotStore(url, max_skew_seconds=max_skew_seconds))

    try_acquire = blocking(slots.SlotStore.try_acquire)
    acquire = held(slots.SlotStore.acquire)
    extend = blocking(slots.SlotStore.extend)
    release = blocking(slots.SlotStore.release)
    set_limit = blocking(slots.SlotStore.set_limit)
    force_release = blocking(slots.SlotStore.force_release)
    cleanup_expired = blocking(slots.SlotStore.cleanup_expired)
    status = blocking(slots.SlotStore.status)
    groups = blocking(slots.SlotStore.groups)
