"""What people do to single tasks: cancel, replay, purge."""

from collections.abc import Mapping
from typing import Any

from fairlead.blobs.shelf import Owner
from fairlead.checks import check_task_id, to_json
from fairlead.errors import AlreadyFinished, UnknownTask
from fairlead.store.running import Running


class Handling(Running):
    async def cancel(self, task_id: str) -> str | None:
        """Ends the task; returns the worker that runs it, if there is one."""
        try:
            return (await self.run("cancel", check_task_id(task_id))).get("worker")
        except UnknownTask:
            if self.archive and await self.archive.record("task", task_id) is not None:
                raise AlreadyFinished() from None
            raise

    async def replay(
        self, task_id: str, parameters: Mapping[str, Any] | None = None, *, tenant: str | None = None
    ) -> list[str]:
        """Queues a failed or dead-lettered task again; InvalidInput when a limit that it needs is gone.

        With a step its job is resumed. Returns the tasks that were queued: more if other steps failed too.
        `parameters` replace those of a task, not of a step; the blobs in them are those of the `tenant`.
        """
        check_task_id(task_id)
        given = ""
        if parameters is not None:
            given = to_json("parameters", parameters)
            await self.blobs.claim(Owner("task", task_id), tenant, "parameters", given)
        queued: list[str] = (await self.run("replay", task_id, given))["queued"]
        return queued

    async def purge(self, task_id: str) -> None:
        """Forgets a failed or dead-lettered task for good, also in the history."""
        try:
            await self.run("purge", check_task_id(task_id))
        except UnknownTask:
            if not self.archive or await self.archive.record("task", task_id) is None:
                raise
        if self.archive:
            await self.archive.forget(task_id)
