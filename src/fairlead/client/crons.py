"""Periodic tasks of a gateway, as the store has them."""

from fairlead.checks import check_name
from fairlead.client.bodies import task_body
from fairlead.client.transport import Part, path
from fairlead.model.cron import CronStatus
from fairlead.model.task import NewTask, Submitted
from fairlead.shapes.cron import CronBody, CronsAnswer, LastTickAnswer, TickAnswer, TickBody
from fairlead.times import read_time, time_text


class Crons(Part):
    async def all(self) -> list[CronStatus]:
        pages = self._transport.pages(CronsAnswer, path("api", "v1", "crons"))
        return [one.to_value() async for page in pages for one in page.crons]

    async def last(self, name: str, schedule: str = "", timezone: str = "UTC") -> tuple[int, int]:
        body = CronBody(schedule=schedule, timezone=timezone) if schedule else None
        answer = await self._transport.post(LastTickAnswer, _cron(name), body)
        return read_time("last", answer.last), read_time("now", answer.now)

    async def tick(self, name: str, previous: int, tick: int, task: NewTask) -> Submitted | None:
        body = TickBody(previous=time_text(previous), tick=time_text(tick), task=task_body(task))
        submitted = (await self._transport.post(TickAnswer, _cron(name, "tick"), body)).submitted
        return None if submitted is None else submitted.to_value()


def _cron(name: str, *parts: str) -> str:
    check_name("name", name)
    return path("internal", "crons", name, *parts)
