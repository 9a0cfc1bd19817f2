"""Periodic tasks in the store: when each cron last ticked, and the act that submits its next tick."""

import asyncio
from bisect import bisect_right

from fairlead import errors, tracing
from fairlead.checks import LATEST, check_name, check_short, check_whole
from fairlead.cron import Cron, next_tick
from fairlead.model.cron import CronStatus
from fairlead.model.task import NewTask, Submitted
from fairlead.store.claims import claim
from fairlead.store.connection import pack, text
from fairlead.store.replies import submitted
from fairlead.store.session import Part
from fairlead.store.specs import spec_of


class Crons(Part):
    async def all(self) -> list[CronStatus]:
        return (await self.page())[0]

    async def page(self, after: str = "", count: int | None = None) -> tuple[list[CronStatus], str]:
        """By name, those after this one, and the name to continue from: "" when there are no more."""
        self._connection.membership.check()
        key = self._connection.keys.key
        ticks, schedules, time = await self._connection.read(
            ("HGETALL", key("crons")), ("HGETALL", key("schedules")), ("TIME",)
        )
        now = self._session.instant(time)
        names = sorted(ticks)
        first = bisect_right(names, after.encode())
        last = len(names) if count is None else first + count
        crons = []
        for name in names[first:last]:
            crons.append(_status(text(name), int(ticks[name]), text(schedules.get(name, b"")), now))
            await asyncio.sleep(0)  # to find a tick may take a while: others are served in between
        return crons, crons[-1].name if last < len(names) else ""

    async def last(self, name: str, schedule: str = "", timezone: str = "UTC") -> tuple[int, int]:
        """Its last tick and the store's now, in ms. A cron seen for the first time begins now.

        `schedule`: the expression by which the caller ticks it, to be shown to people.
        """
        check_name("name", name)
        check_short("schedule", schedule or None)
        check_short("timezone", timezone)
        declared = f"{timezone} {schedule}" if schedule else ""
        answer = await self._session.run("last_tick", name, declared)
        return answer["last"], answer["now"]

    async def tick(self, name: str, previous: int, tick: int, task: NewTask) -> Submitted | None:
        """Submits the task and moves the cron on to `tick`; None when `previous` is no longer its last tick.

        What submit would refuse is refused with its error, and the cron does not move. If the answer is
        lost, repeat with the same task.
        """
        check_name("name", name)
        check_whole("previous", previous, LATEST)
        check_whole("tick", tick, LATEST)
        if tick <= previous:
            raise errors.InvalidInput("tick", "is not after the previous one")
        return await self._submit(task, name, previous, tick)

    @tracing.of_submit
    async def _submit(self, task: NewTask, *of_tick: str | int) -> Submitted | None:
        spec = spec_of(task, self._session.settings)
        await claim(self._session.blobs, spec)
        row = (await self._session.run("tick", *of_tick, pack(spec)))["row"]
        return None if row["answer"] == "passed" else submitted(row)


def _status(name: str, last: int, declared: str, now: int) -> CronStatus:
    timezone, _, schedule = declared.partition(" ")
    if not schedule:
        return CronStatus(name=name, schedule=None, timezone=None, last_tick=last, next_tick=None)
    try:
        cron = Cron(name=name, expression=schedule, task_type=name, timezone=timezone)
        following = next_tick(cron, max(last, now))
    except errors.InvalidInput:  # a time zone that this machine does not know
        following = None
    return CronStatus(name=name, schedule=schedule, timezone=timezone, last_tick=last, next_tick=following)
