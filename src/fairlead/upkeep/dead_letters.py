"""Drops dead letters from their list when their retention is over."""

from fairlead.store.store import Store
from fairlead.upkeep.report import Report


async def run_once(store: Store) -> Report:
    return Report(await store.upkeep.forget())
