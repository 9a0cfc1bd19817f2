"""The dead letters of a gateway's namespace, as the store has them."""

from msgspec.structs import asdict

from fairlead.checks import check_task_id
from fairlead.client.transport import Part, path
from fairlead.model.dead_letter import ALL_DEAD, DeadFilter
from fairlead.model.task import Task, TaskPage
from fairlead.shapes.dead_letter import DeadLetterAnswer
from fairlead.shapes.task import TasksAnswer
from fairlead.times import time_text


class DeadLetters(Part):
    async def page(self, limit: int = 100, cursor: str = "", wanted: DeadFilter = ALL_DEAD) -> TaskPage:
        given = asdict(wanted) | {"since": time_text(wanted.since), "until": time_text(wanted.until)}
        address = path("api", "v1", "dlq")
        page = await self._transport.get(TasksAnswer, address, limit=limit, cursor=cursor, **given)
        return TaskPage([one.to_value() for one in page.tasks], page.next_cursor or "")

    async def get(self, task_id: str) -> Task:
        address = path("api", "v1", "dlq", check_task_id(task_id))
        return (await self._transport.get(DeadLetterAnswer, address)).to_value()
