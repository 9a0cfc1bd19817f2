"""Submits the tasks of crons when their ticks are due: each tick is submitted by one of all processes."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

from fairlead.backend import Backend
from fairlead.background import keep_running
from fairlead.cron import Cron, due, next_tick
from fairlead.errors import (
    FairleadError,
    IdempotencyConflict,
    InvalidInput,
    QueueFull,
    StoreUnavailable,
    WaitTooLong,
)
from fairlead.log.events import EventLog
from fairlead.times import time_text

LONGEST_SLEEP = 30.0  # seconds; this machine's idea of a second may drift from the store's
PAUSE = 1.0  # seconds, after the store did not answer

log = EventLog("fairlead.worker.ticker")


class Ticker:
    def __init__(
        self, backend: Backend, crons: Sequence[Cron], *, longest_sleep: float = LONGEST_SLEEP
    ) -> None:
        self._backend = backend
        self._crons = crons
        self._longest_sleep = longest_sleep

    async def run(self) -> None:
        """Until cancelled, which loses nothing: another ticker, or the next one, continues from there."""
        async with asyncio.TaskGroup() as group:
            for cron in self._crons:
                group.create_task(keep_running(f"cron {cron.name}", partial(self._follow, cron)))

    async def _follow(self, cron: Cron) -> None:
        while True:
            try:
                seconds = await self._look(cron)
            except StoreUnavailable as problem:
                log.warning("store_unavailable", cron=cron.name, problem=str(problem))
                with contextlib.suppress(FairleadError):
                    await self._backend.reopen()
                seconds = PAUSE
            except FairleadError as problem:
                log.error("store_fault", cron=cron.name, problem=str(problem))
                seconds = PAUSE
            await asyncio.sleep(min(seconds, self._longest_sleep))

    async def _look(self, cron: Cron) -> float:
        """Submits what is due; in how many seconds, by the store's clock, it is worth looking again."""
        last, now = await self._backend.crons.last(cron.name, cron.expression, cron.timezone)
        ticks = due(cron, last, now)
        for tick in ticks:
            try:
                submitted = await self._backend.crons.tick(cron.name, last, tick, cron.new_task(tick))
            except (InvalidInput, IdempotencyConflict, QueueFull, WaitTooLong) as refusal:
                # Not moved on: what is put right in time is made up for, and `missed` decides about the rest.
                log.error("tick_refused", cron=cron.name, tick=time_text(tick), problem=str(refusal))
                return (next_tick(cron, now) - now) / 1000
            if submitted is None:
                break  # another process was first: see how far it has come
            log.info("tick_submitted", cron=cron.name, tick=time_text(tick), task=submitted.task_id)
            last = tick
        return 0 if ticks else (next_tick(cron, now) - now) / 1000
