"""Ends the leases that ran out, so that what a lost worker held goes on even while nobody claims."""

from fairlead.store.store import Store
from fairlead.upkeep.report import Report


async def run_once(store: Store) -> Report:
    return Report(await store.expire())
