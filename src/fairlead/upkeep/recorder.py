"""Moves what has happened from the store to SQL."""

from dataclasses import replace

from fairlead.errors import RecordedElsewhere
from fairlead.history.generations import Generation, begin_generation, find_generation
from fairlead.history.opening import History
from fairlead.history.recording import Read, record
from fairlead.store.membership import Found
from fairlead.store.outbox import Entry, Kind
from fairlead.store.store import Store

NEVER_LISTED = 0


class Recorder:
    """Of one life of a namespace. Two at once do no harm: what one of them writes, the other cannot."""

    def __init__(self, store: Store, history: History) -> None:
        self._store, self._history = store, history
        self._generation: Generation | None = None
        self._last: Entry | None = None  # that was recorded
        self._kept = 0  # events that are recorded, and that the estimator still needs

    async def run_once(self) -> int:
        """Records what comes next: events, entries of the audit, and at first all that the store has.

        Returns how much that was, in rounds that may be repeated until there is nothing left.
        """
        try:
            before = self._generation or await self._begin()
            after = replace(before)
            count = await self._record_events(before, after)
            count += await self._record_others()
        except BaseException:
            self._generation = None  # what was kept of it is read again
            raise
        return count

    async def trim(self) -> None:
        """Drops what the estimator has learnt from since it was recorded."""
        if self._kept and self._last:
            self._kept = await self._store.outbox.recorded(self._last)

    async def _record_events(self, before: Generation, after: Generation) -> int:
        batch = await self._store.outbox.after(before.position)
        if not batch.entries:
            return 0
        events = batch.events
        after.position, after.beat = events[-1][0], batch.found.beat
        after.lost += events[0][0] - before.position - 1
        if not await self._keep(Read(events, batch.tasks, batch.jobs), before, after):
            return 0
        self._last = batch.entries[-1]
        self._kept = await self._store.outbox.recorded(self._last)
        return len(events)

    async def _record_others(self) -> int:
        """The audit, and once all tasks and jobs that the store had when its history began."""
        if not (before := self._generation):
            return 0
        after = replace(before)
        entries = await self._store.audit.after(before.audited)
        if entries:
            after.audited = entries[-1][0]
        tasks, after.tasks_listed = await self._next_listed("task", before.tasks_listed)
        jobs, after.jobs_listed = await self._next_listed("job", before.jobs_listed)
        if after == before:
            return 0
        await self._keep(Read(tasks=tasks, jobs=jobs, audit=entries), before, after)
        return len(entries) + len(tasks) + len(jobs)

    async def _next_listed(
        self, kind: Kind, listed: int | None
    ) -> tuple[dict[str, dict[bytes, bytes]], int | None]:
        if listed is None:
            return {}, None
        return await self._store.outbox.listed(kind, listed)

    async def _keep(self, read: Read, before: Generation, after: Generation) -> bool:
        try:
            await record(self._history, read, before, after)
        except RecordedElsewhere:
            self._generation = None
            return False
        self._generation = after
        return True

    async def _begin(self) -> Generation:
        await self._store.epochs.join()
        first = await self._store.outbox.begin()  # before anything that needs SQL: it may be away for long
        found = await self._store.epochs.check()
        known = await find_generation(self._history, found.epoch)
        known = known or await begin_generation(self._history, await self._new(found, first))
        await self._store.epochs.expect(known.beat)
        self._generation = known
        return known

    async def _new(self, found: Found, first: int) -> Generation:
        is_older = first > 1  # its first events were never recorded
        return Generation(
            id=0,
            namespace=await self._history.number(),
            epoch=found.epoch,
            opening=found.opening,
            begun_at=await self._store.estimates.now(),
            first=first,
            position=first - 1,
            beat=found.beat,
            tasks_listed=NEVER_LISTED if is_older else None,
            jobs_listed=NEVER_LISTED if is_older else None,
        )
