"""Moves what has happened from the store to SQL."""

from dataclasses import replace

from fairlead.errors import RecordedElsewhere
from fairlead.history.generations import Generation, begin_generation, find_generation
from fairlead.history.opening import History
from fairlead.history.recording import Read, record
from fairlead.store.membership import Found
from fairlead.store.store import Store


class Recorder:
    """Of one life of a namespace. Two at once do no harm: what one of them writes, the other cannot."""

    def __init__(self, store: Store, history: History) -> None:
        self._store, self._history = store, history
        self._generation: Generation | None = None

    async def run_once(self) -> int:
        """Records the next events of the outbox; returns how many they were."""
        generation = self._generation or await self._begin()
        batch = await self._store.outbox.after(generation.position)
        if not batch.entries:
            return 0
        events = batch.events
        after = replace(generation, position=events[-1][0], beat=batch.found.beat)
        after.lost += events[0][0] - generation.position - 1
        try:
            await record(self._history, Read(events, batch.tasks, batch.jobs), generation, after)
        except RecordedElsewhere:
            self._generation = None
            return 0
        self._generation = after
        await self._store.outbox.recorded(batch.entries[-1])
        return len(events)

    async def _begin(self) -> Generation:
        found = await self._store.epochs.join()
        known = await find_generation(self._history, found.epoch)
        self._generation = known or await begin_generation(self._history, await self._new(found))
        self._store.epochs.expect(found, self._generation.beat)
        return self._generation

    async def _new(self, found: Found) -> Generation:
        first = await self._store.outbox.first()
        return Generation(
            id=0,
            namespace=await self._history.number(),
            epoch=found.epoch,
            opening=found.opening,
            begun_at=found.now,
            first=first,
            position=first - 1,
            beat=found.beat,
        )
