"""One worker process as its supervisor sees it: its heartbeat, its guard, and what is left when it ends."""

import asyncio
import contextlib
import math
import os
import signal
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from fairlead.backend import Backend
from fairlead.background import cancel_all, in_background, within
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, InvalidInput
from fairlead.log.events import EventLog
from fairlead.model.reports import Failed, Grant
from fairlead.settings import EngineSettings, LeaseSettings, Settings, WorkerSettings
from fairlead.worker.begun import Begun, shared_file
from fairlead.worker.child_process import start_child
from fairlead.worker.heartbeat import Heartbeat
from fairlead.worker.options import DRAINED, STOP_SECONDS, STUCK, Plan
from fairlead.worker.outcome import DEADLINE
from fairlead.worker.pipe import Branches, MessagePipe

LOOK_SECONDS = 0.1
SILENT_SECONDS = 2.0  # a worker shows every half second that its loop runs
EXCUSES = 10  # times that a task is not charged with the death of its worker
GOODBYE_SECONDS = 0.2  # to read what a dead worker still said
SAID_SECONDS = 10.0  # to read the goodbye of one that has said it, however busy we are
KILL_SECONDS = 1.5  # after its grace, for a worker to give back what it runs and go

log = EventLog("fairlead.worker")


class WorkerProcess:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        pipe: MessagePipe,
        begun: Sequence[Begun],
        excused: Counter[str],
    ) -> None:
        self.process = process
        self.heartbeats: list[Heartbeat] = []  # one for each namespace, once it has said for which it works
        self._pipe = pipe
        self._begun = begun
        self._excused = excused  # how often each task was not charged with the death of its worker
        self._killing: asyncio.TimerHandle | None = None
        self._killed_at = math.inf
        self._cut_short = False  # it was killed because it did not stop in its time

    @classmethod
    async def start(cls, plan: Plan, excused: Counter[str]) -> "WorkerProcess":
        """Raises OSError or RuntimeError when the system has no room for another process or file."""
        registers = [shared_file() for _ in range(plan.count)]
        try:
            begun = [Begun(register) for register in registers]
            process, pipe = await start_child("fairlead.app.worker_main", *registers)
        finally:
            for register in registers:
                os.close(register)
        pipe.send(plan)  # not as an argument: everybody may read those, and a URL may hold a password
        return cls(process, pipe, begun, excused)

    async def settings(self) -> list[Settings]:
        """Those of its app that its supervisor needs, for each namespace; none when it ended before."""
        return [
            Settings(
                engine=msgspec.convert(message["engine"], EngineSettings),
                worker=msgspec.convert(message["worker"], WorkerSettings),
                lease=msgspec.convert(message["lease"], LeaseSettings),
            )
            for message in await self._pipe.receive() or ()
        ]

    async def live(self, backends: Sequence[Backend]) -> None:
        """Until it has ended and its affairs are in order."""
        branches = Branches(self._pipe, len(backends))
        self.heartbeats = [
            Heartbeat(backend, branch, begun, vouch=self.moves)
            for backend, branch, begun in zip(backends, branches.all, self._begun, strict=True)
        ]
        beating = asyncio.gather(*(heartbeat.run() for heartbeat in self.heartbeats))
        self._pipe.send({"go": True})
        guards = {f"guard {i}": partial(self._guard, one) for i, one in enumerate(self.heartbeats)}
        try:
            async with in_background(guards):
                code = await self.process.wait()
                # It reads the goodbye, if there was one. The pipe ends with the process, unless a process
                # that it has started and left behind holds it open.
                await within(SAID_SECONDS if code in (DRAINED, STUCK) else GOODBYE_SECONDS, beating)
        finally:
            await cancel_all(beating)
            await branches.close()
        for backend, heartbeat in zip(backends, self.heartbeats, strict=True):
            await self._settle(backend, heartbeat)

    async def close(self) -> int:
        """Its exit code."""
        code = await self.process.wait()
        if self._killing:
            self._killing.cancel()
        await self._pipe.close()
        return code

    def moves(self) -> bool:
        """Not stopped (SIGSTOP), not ended: a worker that does not move is not vouched for."""
        try:
            how = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.process.pid, how) is None
        except ChildProcessError:
            return False

    def drain(self, grace: float) -> None:
        """Asks it to stop, and kills it after the grace: a handler may block the loop that would hear it."""
        self._pipe.send({"drain": grace})
        end = monotonic() + grace + KILL_SECONDS
        if end < self._killed_at:
            if self._killing:
                self._killing.cancel()
            self._killed_at = end
            self._killing = asyncio.get_running_loop().call_later(grace + KILL_SECONDS, self._cut)

    def _cut(self) -> None:
        # not process.kill: of one that has just ended it takes the exit code from the one that waits for it
        with contextlib.suppress(ProcessLookupError):
            if self.process.returncode is None:
                log.error("worker_did_not_stop", pid=self.process.pid)
                self._cut_short = True
                os.kill(self.process.pid, signal.SIGKILL)

    async def _guard(self, heartbeat: Heartbeat) -> None:
        """Kills it when it can do nothing itself any more and a lease ends, or a task is past its time."""
        before, silent = 0.0, 0.0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            # counted in looks, not by the clock: a stopped worker, alone or with us, gets its time to answer
            silent = silent + LOOK_SECONDS if heartbeat.alive_at == before and self.moves() else 0.0
            now, before, lease = monotonic(), heartbeat.alive_at, heartbeat.lease_seconds
            overdue = heartbeat.worker is not None and (
                now > heartbeat.prolonged_at + lease  # what it claimed since is not among those held
                or any(now > end for end in heartbeat.lease_ends.values())
                or any(now > deadline + 2 * STOP_SECONDS for deadline in heartbeat.deadlines.values())
            )
            if overdue and silent > min(SILENT_SECONDS, lease / 2):
                log.error("worker_stuck", worker=heartbeat.worker, pid=self.process.pid)
                with contextlib.suppress(ProcessLookupError):
                    self.process.kill()

    async def _settle(self, backend: Backend, heartbeat: Heartbeat) -> None:
        """It is dead for certain: what it held is free now, and not only when its lease would end."""
        if heartbeat.worker is None:
            return
        with contextlib.suppress(FairleadError):  # then the leases end by themselves
            if heartbeat.left_over is None and self._cut_short:
                await self._give_back(backend, heartbeat.worker)
                return
            if heartbeat.left_over is None:
                code = self.process.returncode
                log.error("worker_died", worker=heartbeat.worker, pid=self.process.pid, exit_code=code)
                await self._excuse(backend, heartbeat.worker, heartbeat.apart)
                await backend.expire(heartbeat.worker)
                return
            for task_id, fence, failure in heartbeat.left_over:
                if failure:
                    message, again = "it did not stop in time", failure != DEADLINE
                    report = Failed(task_id, fence, failure, message, retriable=again)
                    await backend.fail(heartbeat.worker, report)
                else:
                    await backend.release(heartbeat.worker, Grant(task_id, fence))
            try:
                await backend.workers.leave(heartbeat.worker)
            except InvalidInput:  # it left without knowing of some it held: an answer never reached it
                await backend.expire(heartbeat.worker)

    async def _give_back(self, backend: Backend, worker: str) -> None:
        """It was stopped by us: none of its tasks is charged with that."""
        held = await backend.workers.heartbeat(worker, draining=True)
        await backend.release(worker, *(Grant(task_id) for task_id in (*held.leases, *held.stopping)))
        await backend.expire(worker)

    async def _excuse(self, backend: Backend, worker: str, apart: list[tuple[str, int]]) -> None:
        """A run in its own process did not kill the worker: its task is not charged with a crash.

        Not for ever: it may have found a way to.
        """
        innocent = [Grant(task_id, fence) for task_id, fence in apart if self._excused[task_id] < EXCUSES]
        self._excused.update(grant.id for grant in innocent)
        if innocent:
            await backend.release(worker, *innocent)
