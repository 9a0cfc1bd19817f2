"""Slots without Redis: leases on numbered objects in an object store or a folder."""

from fairlead.slots.slot import Slot, SlotInfo, SlotStatus
from fairlead.slots.store import SlotStore

__all__ = ["Slot", "SlotInfo", "SlotStatus", "SlotStore"]
