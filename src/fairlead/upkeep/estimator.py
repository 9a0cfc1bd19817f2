"""Makes the forecast that all estimates are read from, every few seconds, and learns how they fitted."""

import asyncio
import time
from collections.abc import Mapping

from fairlead.clock import monotonic
from fairlead.estimates.expected import Expected
from fairlead.estimates.forecast import fields_of, play
from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.staleness import EVERY_SECONDS, SOONEST_SECONDS, has_changed
from fairlead.store.store import Store

BEHIND_SECONDS = 10.0  # while there is more to learn from
IDLE_SECONDS = 20.0  # when nothing waits or runs
MOST_SHARE = 0.25  # of a processor
KEPT_SECONDS = 5.0  # between two times that what was learnt is kept
TTL_MS = 60_000  # of a forecast: what is older says nothing
READS_PER_ROUND = 50  # of the outbox, before a forecast has its turn


class Estimator:
    """`who` is the caretaker it works for: when another one is elected, nothing of it is kept any more."""

    def __init__(self, store: Store, who: str) -> None:
        self._estimates, self._who = store.estimates, who
        self.knowledge = Knowledge()
        self._expected = Expected()
        self._forecast_at = self._kept_at = -60.0
        self._pause = 0.0
        self._is_idle = False
        self._seen: tuple[Mapping[str, int], str] = ({}, "")  #: what waited, and the position in the outbox

    async def begin(self) -> None:
        """Continues where another process has stopped."""
        self.knowledge = Knowledge.unpacked(await self._estimates.learnt())

    async def run(self) -> None:
        """Until another caretaker is elected."""
        await self.begin()
        while await self.run_once():
            await asyncio.sleep(SOONEST_SECONDS / 2)

    async def run_once(self) -> bool:
        """Learns what is new, and forecasts if it is time to; False: another caretaker is elected."""
        is_behind = await self.learn()
        now = monotonic()
        if now - self._kept_at >= KEPT_SECONDS and not await self.keep():
            return False
        if now - self._forecast_at < max(self._pause, BEHIND_SECONDS if is_behind else 0.0):
            return True
        seen = await self._estimates.queued(), self.knowledge.position
        if now - self._forecast_at < self._patience(*seen):
            return True
        self._seen = seen
        return await self.forecast()

    def _patience(self, queued: Mapping[str, int], position: str) -> float:
        """How many seconds after the forecast before the next one is made."""
        before, position_before = self._seen
        if has_changed(queued, before):
            return SOONEST_SECONDS
        return IDLE_SECONDS if self._is_idle and position == position_before else EVERY_SECONDS

    async def learn(self) -> bool:
        """Whether there is more to learn from."""
        for _ in range(READS_PER_ROUND):
            before = self.knowledge.position
            self.knowledge.learn(*await self._estimates.events_after(before))
            if self.knowledge.position == before:
                return False
        return True

    async def keep(self) -> bool:
        """For the process that continues."""
        self._kept_at = monotonic()
        now = await self._estimates.now()
        return await self._estimates.learn(self._who, self.knowledge.packed_changes(now))

    async def forecast(self) -> bool:
        self._forecast_at, used = monotonic(), time.process_time()
        picture = await self._estimates.picture(self.knowledge.arrivals.limits())
        played = play(picture, self.knowledge)
        outlook = self._expected.of(played)
        kept = await self._estimates.save_forecast(self._who, fields_of(played), TTL_MS, outlook)
        self._pause = (time.process_time() - used) / MOST_SHARE
        self._is_idle = not picture.waiting and not picture.running
        return kept
