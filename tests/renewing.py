"""The lease of one task, renewed by the heartbeat of its worker."""

from fairlead.errors import Fenced
from fairlead.model.reports import Grant
from fairlead.store.store import Store


async def renewed_by(store: Store, worker: str, grant: Grant, lease_ms: int = 30_000) -> int:
    """The new end of the lease; raises Fenced when the worker does not hold it."""
    beat = await store.workers.heartbeat(worker, [grant], lease_ms=lease_ms)
    if grant.id not in beat.leases:
        raise Fenced
    return beat.leases[grant.id]
