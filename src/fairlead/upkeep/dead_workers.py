"""Says which workers have fallen silent, each once; what they held goes on when its leases end."""

from fairlead.log.events import EventLog
from fairlead.store.store import Store
from fairlead.store.upkeep import LostWorker
from fairlead.times import time_text
from fairlead.upkeep.report import Report

MOST_NAMED = 5  # in the log, of one sweep: a rack that loses its power takes thousands of workers with it
MOST_ACTS = 64  # of one sweep; the other duties have their turn before the next

log = EventLog("fairlead.upkeep")


async def run_once(store: Store) -> Report:
    """One sweep, in several acts when many were lost together, so that the log has one total for all."""
    lost: list[LostWorker] = []
    try:
        for _ in range(MOST_ACTS):
            if not (batch := await store.upkeep.bury()):
                break
            lost += batch
    finally:  # the store names each worker once: what is not logged now never is
        _log(lost)
    return Report(len(lost))


def _log(lost: list[LostWorker]) -> None:
    for worker in lost[:MOST_NAMED]:
        seen = time_text(worker.seen)
        log.warning("worker_lost", worker=worker.worker_id, seen=seen, running=worker.running)
    if len(lost) > MOST_NAMED:
        running = sum(worker.running for worker in lost)
        log.warning("workers_lost", count=len(lost), named=MOST_NAMED, running=running)
