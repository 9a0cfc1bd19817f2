"""Says which workers have fallen silent, each once; what they held goes on when its leases end."""

from fairlead.log.events import EventLog
from fairlead.store.store import Store
from fairlead.upkeep.report import Report
from fairlead.views import time_view

log = EventLog("fairlead.upkeep")


async def run_once(store: Store) -> Report:
    lost = await store.upkeep.bury()
    for worker in lost:
        seen = time_view(worker.seen)
        log.warning("worker_lost", worker=worker.worker_id, seen=seen, running=worker.running)
    return Report(len(lost))
