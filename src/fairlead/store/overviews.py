"""A namespace at a glance: a fixed number of short reads, however much there is."""

from collections import Counter
from collections.abc import Awaitable, Callable

from fairlead.model.overview import Counts, Overview
from fairlead.model.stats import Stats
from fairlead.store.session import Part, Session


class Overviews(Part):
    def __init__(self, session: Session, stats: Callable[..., Awaitable[Stats]]) -> None:
        super().__init__(session)
        self._stats = stats

    async def get(self, tenant: str | None = None) -> Overview:
        """For an operator, or for one tenant, whose version changes with acts of others, too."""
        stats = await self._stats(tenant, brief=True)
        keys = self._connection.keys
        dead = keys.key("dead") if tenant is None else keys.key("deadof", tenant)
        time, meta, limits, dead_letters, crons, forecast = await self._connection.read(
            ("TIME",),
            ("HMGET", keys.meta, "events", "audited", "jobs_open"),
            ("ZCARD", keys.key("limits")),
            ("ZCARD", dead),
            ("HLEN", keys.key("crons")),
            ("PEXPIRETIME", keys.key("curves")),  # each forecast is saved with its end
        )
        seconds, microseconds = map(int, time)
        events, audited, jobs = (int(number or 0) for number in meta)
        workers = Counter((worker.state, worker.capacity, worker.running) for worker in stats.workers)
        if tenant is None:
            counts = Counts(limits=limits, jobs=jobs, dead_letters=dead_letters, crons=crons)
        else:
            counts = Counts(limits=None, jobs=None, dead_letters=dead_letters, crons=None)
        return Overview(
            at=1000 * seconds + microseconds // 1000,
            stats=stats,
            counts=counts,
            version=(events, audited, limits, crons, forecast, frozenset(workers.items())),
        )
