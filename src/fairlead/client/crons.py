"""Periodic tasks of a gateway, as the store has them."""

from fairlead.checks import check_name
from fairlead.client.bodies import task_body
from fairlead.client.transport import HttpTransport, path
from fairlead.model.task import NewTask, Submitted
from fairlead.shapes.declaration import CronAnswer, TickAnswer, TickBody
from fairlead.times import read_time, time_text


class Crons:
    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def last(self, name: str) -> tuple[int, int]:
        """Its last tick and the store's now, in ms. A cron seen for the first time begins now."""
        answer = await self._transport.post(CronAnswer, _cron(name))
        return read_time("last", answer.last), read_time("now", answer.now)

    async def tick(self, name: str, previous: int, tick: int, task: NewTask) -> Submitted | None:
        """Submits the task and moves the cron on; None when `previous` is no longer its last tick."""
        body = TickBody(previous=time_text(previous), tick=time_text(tick), task=task_body(task))
        submitted = (await self._transport.post(TickAnswer, _cron(name, "tick"), body)).submitted
        return None if submitted is None else submitted.to_value()


def _cron(name: str, *parts: str) -> str:
    check_name("name", name)
    return path("internal", "crons", name, *parts)
