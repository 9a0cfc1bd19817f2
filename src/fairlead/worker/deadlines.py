"""Deadlines that become earlier, because a waiting task needs the tier of a run that can be shortened."""

import asyncio
import math
from functools import partial
from typing import Any

from fairlead.backend import Backend
from fairlead.clock import monotonic
from fairlead.model.reports import Grant
from fairlead.worker.pipe import Pipe
from fairlead.worker.registration import Registration
from fairlead.worker.run import Run
from fairlead.worker.runs import Runs


class Deadlines:
    """Applies what the heartbeat learns, then confirms it: only then is what such a run gave up free.

    A call of the store makes the heartbeat ask at once. A beat has every deadline exactly, by the same clock
    as the task; the time left that the call names has aged by then.
    """

    def __init__(self, backend: Backend, registration: Registration, runs: Runs, pipe: Pipe) -> None:
        self._backend = backend
        self._registration = registration
        self._runs = runs
        self._pipe = pipe
        self._called: dict[int, float] = {}  # fences, and when the call came
        self._applied: dict[int, Grant] = {}  # by fence
        self._has_applied = asyncio.Event()

    def ask(self, about: str) -> None:
        """A call: `task:fence:milliseconds`."""
        _, fence, _ = about.split(":")
        self._called[int(fence)] = monotonic()
        self._pipe.send({"beat": True})

    def learn(self, beat: dict[str, Any]) -> None:
        for fence, run in self._runs.running.items():
            deadline = beat["deadlines"].get(run.task.task_id)
            if deadline is None or not _is_current(run, beat["sent"]):
                continue
            was_called = self._called.get(fence, math.inf) < beat["sent"]
            if was_called:
                del self._called[fence]
            # its timeout may be shorter than the tier that it was shortened to: then nothing moves
            if run.shorten(deadline) or was_called:
                self._applied[fence] = Grant(run.task.task_id, fence)
                self._has_applied.set()
        for fence, called_at in list(self._called.items()):
            if fence not in self._runs.running and called_at < beat["sent"]:
                del self._called[fence]

    async def confirm(self) -> None:
        """Until cancelled. What a worker that ends meanwhile had to confirm is free when its lease ends."""
        while True:
            await self._has_applied.wait()
            self._has_applied.clear()
            applied, self._applied = self._applied, {}
            # a refusal means that the run has ended, and its units with it
            confirm = partial(self._backend.shortened, self._registration.worker_id, *applied.values())
            await self._registration.until_answered(confirm)


def _is_current(run: Run, sent: float) -> bool:
    """Whether a beat sent then is about this run as it is now, not as it was before it got more time."""
    return run.stop_asked_at is None and sent > max(run.claimed_at, run.extended_at)
