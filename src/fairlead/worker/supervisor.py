"""Keeps N worker processes running: beats for them, replaces those that die, kills those that cannot stop.

The supervisor imports none of the user's code, so nothing a handler does can hold it up.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack

from fairlead.backend import Backend
from fairlead.background import within
from fairlead.client.opening import connected_backend
from fairlead.clock import monotonic
from fairlead.errors import FairleadError
from fairlead.log.events import EventLog
from fairlead.settings import Settings
from fairlead.store.engine.state import warn_if_not_durable
from fairlead.store.store import Store
from fairlead.worker.options import DRAINED, NOT_REACHABLE, Plan
from fairlead.worker.signals import on_stop
from fairlead.worker.worker_process import WorkerProcess

LOOK_SECONDS = 0.1
SHORT_LIFE = 5.0  # seconds; a process that dies younger is replaced more slowly each time
LONGEST_PAUSE = 10.0
AWAY_PAUSE = 1.0  # seconds, when it was the store that could not be reached

log = EventLog("fairlead.worker")


def longer(pause: float) -> float:
    return min(LONGEST_PAUSE, pause * 2 + 0.1)


class Supervisor:
    def __init__(self, plan: Plan, processes: int = 1) -> None:
        self._plan = plan
        self._processes = processes
        self._workers: set[WorkerProcess] = set()
        self._excused: Counter[str] = Counter()
        self._backends: list[Backend] = []  # one for each namespace
        self._opening = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._grace = 0.0  # for worker processes that are still starting
        self._worked = False
        self._exit_code = 0

    async def run(self, *, obey_signals: bool = True) -> int:
        """Until it is stopped, or all have been drained; the exit code of the command."""
        if obey_signals:
            on_stop(self.stop, self.hurry)
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            first = group.create_task(self._keep(stack))
            while not (first.done() or self._has_worked()):
                await asyncio.sleep(LOOK_SECONDS)  # what is wrong with the app is reported once, not by each
            for backend in self._backends:
                if self._worked and isinstance(backend, Store):  # else the server may be the wrong one
                    await warn_if_not_durable(backend.connection)
            for _ in range(1, self._processes):
                group.create_task(self._keep(stack))
        return self._exit_code

    def stop(self) -> None:
        """The workers drain."""
        self._end(self._plan.options.grace)

    def hurry(self) -> None:
        """They give back at once what they still run."""
        self._end(0)

    def _end(self, grace: float) -> None:
        self._stopping.set()
        self._grace = grace
        for worker in self._workers:
            worker.drain(grace)

    async def _keep(self, stack: AsyncExitStack) -> None:
        """One place among the processes: a process that dies in it is replaced."""
        pause = 0.0
        while not self._stopping.is_set():
            born = monotonic()
            try:
                worker = await WorkerProcess.start(self._plan, self._excused)
            except (OSError, RuntimeError) as problem:  # no room for another process, file or thread, for now
                pause = longer(pause)
                log.error("worker_not_started", problem=str(problem), next_try_seconds=pause)
                await within(pause, self._stopping.wait())
                continue
            code = await self._one_life(worker, stack)
            if self._stopping.is_set() or code == DRAINED:
                return  # any other end is a death, also one with exit code 0
            away = code == NOT_REACHABLE
            if not self._has_worked() and not (away and await self._reopened()):
                # it cannot work as it is: another try would end the same
                self._exit_code = code if code > 0 else 1
                self.stop()
                return
            lived = monotonic() - born
            pause = AWAY_PAUSE if away else 0.0 if lived > SHORT_LIFE else longer(pause)
            await within(pause, self._stopping.wait())

    async def _one_life(self, worker: WorkerProcess, stack: AsyncExitStack) -> int:
        self._workers.add(worker)
        if self._stopping.is_set():  # since it was being started
            worker.drain(self._grace)
        try:
            if settings := await worker.settings():
                await worker.live(await self._open(stack, settings))
            self._has_worked()
            return await worker.close()
        finally:
            self._workers.discard(worker)

    def _has_worked(self) -> bool:
        """Whether some worker has ever registered."""
        self._worked = self._worked or any(
            heartbeat.worker for worker in self._workers for heartbeat in worker.heartbeats
        )
        return self._worked

    async def _reopened(self) -> bool:
        """Whether there is an embedded server again.

        The one that the worker found may have ended with the command that owned it, before it could register.
        """
        if not self._backends or self._backends[0].settings.engine.url:
            return False
        try:
            await self._backends[0].reopen()
        except FairleadError:
            return False
        return True

    async def _open(self, stack: AsyncExitStack, settings: Sequence[Settings]) -> list[Backend]:
        """Opened by the supervisor first: an embedded server is to live as long as the supervisor."""
        async with self._opening:
            for one in settings[len(self._backends) :]:
                self._backends.append(await stack.enter_async_context(connected_backend(one)))
        return self._backends
