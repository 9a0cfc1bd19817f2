"""Forgets what has ended: what is over its bounds, and the places of what has run out by time."""

from fairlead.store.store import Store
from fairlead.upkeep.report import Report


async def run_once(store: Store) -> Report:
    return Report(await store.upkeep.forget())
