"""Does what time does to waiting tasks (delays, ageing, patience, rates) even while nobody claims."""

from fairlead.store.store import Store
from fairlead.upkeep.report import Report


async def run_once(store: Store) -> Report:
    return Report(await store.promote())
