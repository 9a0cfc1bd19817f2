"""Periodic tasks in the store: when each cron last ticked, and the act that submits its next tick."""

from fairlead import errors
from fairlead.checks import LATEST, check_name, check_whole
from fairlead.model.task import NewTask, Submitted
from fairlead.store.connection import pack
from fairlead.store.replies import submitted
from fairlead.store.session import Session
from fairlead.store.specs import spec_of


class Crons:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def last(self, name: str) -> tuple[int, int]:
        """Its last tick and the store's now, in ms. A cron seen for the first time begins now."""
        check_name("name", name)
        answer = await self._session.run("last_tick", name)
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
        spec = pack(spec_of(task, self._session.settings))
        row = (await self._session.run("tick", name, previous, tick, spec))["row"]
        return None if row["answer"] == "passed" else submitted(row)
