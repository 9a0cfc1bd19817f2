"""The duties of upkeep. Each does what is due now and returns how much it did."""

from collections.abc import Awaitable, Callable

from fairlead.backend import UpkeepBackend
from fairlead.log.events import EventLog
from fairlead.model.worker import LostWorker
from fairlead.store.store import Store
from fairlead.times import time_text

BATCH = 128  # what one act of the store does at most: after a full batch there may be more to do at once
MOST_NAMED = 5  # in the log, of one sweep: a rack that loses its power takes thousands of workers with it
MOST_ACTS = 64  # of one sweep; the other duties have their turn before the next

log = EventLog("fairlead.upkeep")


async def log_dead_workers(upkeep: UpkeepBackend) -> int:
    """Logs each worker that has fallen silent, once. The tasks that it held are queued when their leases end.

    One sweep, in several acts when many were lost together, so that the log has one total for all.
    """
    lost: list[LostWorker] = []
    try:
        for _ in range(MOST_ACTS):
            if not (batch := await upkeep.bury()):
                break
            lost += batch
    finally:  # the store names each worker once: what is not logged now never is
        _log(lost)
    return len(lost)


def _log(lost: list[LostWorker]) -> None:
    for worker in lost[:MOST_NAMED]:
        seen = time_text(worker.seen)
        log.warning("worker_lost", worker=worker.worker_id, seen=seen, running=worker.running)
    if len(lost) > MOST_NAMED:
        running = sum(worker.running for worker in lost)
        log.warning("workers_lost", count=len(lost), named=MOST_NAMED, running=running)


async def sweep_lists(store: Store) -> int:
    """Removes entries whose records have expired: a part of the lists in each round, from end to end.

    A part is small, because the lists may be long and nearly all their records exist. Entries that expired
    together lie together: a full part is followed by the next at once.
    """
    removed, _ = await store.upkeep.sweep()
    return removed


#: All are safe to run twice: an elected caretaker that was stopped for a while may wake beside its successor.
#: Expired leases and due tasks are handled by every claim too; here also while no worker claims.
DUTIES: dict[str, Callable[[Store], Awaitable[int]]] = {
    "expired_leases": lambda store: store.expire(),
    "due": lambda store: store.promote(),
    "dead_workers": lambda store: log_dead_workers(store.upkeep),
    "dead_letters": lambda store: store.upkeep.forget(),
    "lists": sweep_lists,
    "samples": lambda store: store.series.sample(),
    "blobs": lambda store: store.upkeep.tidy_blobs(),
}
