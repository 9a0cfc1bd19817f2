"""Keeps N worker processes going: beats for them, replaces those that die, kills those that cannot stop.

The supervisor imports none of the user's code, so nothing a handler does can hold it up.
"""

import asyncio
import contextlib
import math
import os
import signal
import socket
import sys
from collections import Counter
from contextlib import AsyncExitStack

import msgspec

from fairlead.client.opening import connected_door
from fairlead.clock import monotonic
from fairlead.door import Door
from fairlead.errors import FairleadError, InvalidInput
from fairlead.log.events import EventLog
from fairlead.settings import EngineSettings, LeaseSettings, Settings, WorkerSettings
from fairlead.store.reports import Failed, Grant
from fairlead.worker.begun import Begun, shared_file
from fairlead.worker.link import Link
from fairlead.worker.pulse import Pulse
from fairlead.worker.signals import on_stop
from fairlead.worker.worker import DRAINED, NOT_REACHABLE, STOP_SECONDS, STUCK, Plan

LOOK_SECONDS = 0.1
SILENT_SECONDS = 2.0  # a worker shows every half second that its loop runs
SHORT_LIFE = 5.0  # seconds; who dies younger is replaced more slowly each time
LONGEST_PAUSE = 10.0
AWAY_PAUSE = 1.0  # seconds, when it was the store that could not be reached
EXCUSES = 10  # times that a task is not charged with the death of its worker
GOODBYE_SECONDS = 0.2  # to read what a dead worker still said
SAID_SECONDS = 10.0  # to read the goodbye of one that has said it, however busy we are
KILL_SECONDS = 1.5  # after its grace, for a worker to give back what it runs and go

log = EventLog("fairlead.worker")


class Child:
    """One worker process and its pulse."""

    pulse: Pulse | None = None  # once it has said which store it works for

    def __init__(
        self, process: asyncio.subprocess.Process, link: Link, begun: Begun, excused: Counter[str]
    ) -> None:
        self.process = process
        self._link = link
        self._begun = begun
        self._excused = excused  # how often each task was not charged with the death of its worker
        self._killing: asyncio.TimerHandle | None = None
        self._killed_at = math.inf
        self._cut_short = False  # it was killed because it did not stop in its time

    @classmethod
    async def start(cls, plan: Plan, excused: Counter[str]) -> "Child":
        ours, theirs = socket.socketpair()
        register = shared_file()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "fairlead.worker.child",
                str(theirs.fileno()),
                str(os.getpid()),
                str(register),
                pass_fds=[theirs.fileno(), register],
            )
        begun = Begun.of_file(register)
        os.close(register)
        link = await Link.over(ours)
        link.send(plan)  # not as an argument: everybody may read those, and a URL may hold a password
        return cls(process, link, begun, excused)

    async def settings(self) -> Settings | None:
        """Those of its app that its supervisor needs; None when it ended before."""
        message = await self._link.receive()
        if message is None:
            return None
        return Settings(
            engine=msgspec.convert(message["engine"], EngineSettings),
            worker=msgspec.convert(message["worker"], WorkerSettings),
            lease=msgspec.convert(message["lease"], LeaseSettings),
        )

    async def live(self, door: Door) -> None:
        """Until it has ended and its affairs are in order."""
        self.pulse = Pulse(door, self._link, self._begun, vouch=self.moves)
        pulse = asyncio.create_task(self.pulse.run())
        guard = asyncio.create_task(self._guard(self.pulse))
        self._link.send({"go": True})
        try:
            code = await self.process.wait()
            # It reads the goodbye, if there was one. The line ends with the process, unless a process that
            # it has started and left behind holds it open.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SAID_SECONDS if code in (DRAINED, STUCK) else GOODBYE_SECONDS):
                    await pulse
        finally:
            for task in (pulse, guard):
                task.cancel()
            await asyncio.wait({pulse, guard})
        await self._settle(door, self.pulse)

    async def close(self) -> int:
        """Its exit code."""
        code = await self.process.wait()
        if self._killing:
            self._killing.cancel()
        await self._link.close()
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
        self._link.send({"drain": grace})
        end = monotonic() + grace + KILL_SECONDS
        if end < self._killed_at:
            if self._killing:
                self._killing.cancel()
            self._killed_at = end
            self._killing = asyncio.get_running_loop().call_later(grace + KILL_SECONDS, self._cut)

    def _cut(self) -> None:
        # not process.kill: of one that has just ended it takes the exit code from whoever waits for it
        with contextlib.suppress(ProcessLookupError):
            if self.process.returncode is None:
                log.error("worker_did_not_stop", pid=self.process.pid)
                self._cut_short = True
                os.kill(self.process.pid, signal.SIGKILL)

    async def _guard(self, pulse: Pulse) -> None:
        """Kills it when it can do nothing itself any more and a lease ends, or a task is past its time."""
        heard, silent = 0.0, 0.0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            # counted in looks, not by the clock: who was stopped, alone or with us, gets its time to speak
            silent = silent + LOOK_SECONDS if pulse.heard_at == heard and self.moves() else 0.0
            now, held, heard, lease = monotonic(), pulse.held, pulse.heard_at, pulse.lease_seconds
            overdue = pulse.worker is not None and (
                now > pulse.prolonged_at + lease  # what it claimed since is not among those held
                or any(now > end for end in held.lease_ends.values())
                or any(now > deadline + 2 * STOP_SECONDS for deadline in held.deadlines.values())
            )
            if overdue and silent > min(SILENT_SECONDS, lease / 2):
                log.error("worker_stuck", worker=pulse.worker, pid=self.process.pid)
                with contextlib.suppress(ProcessLookupError):
                    self.process.kill()

    async def _settle(self, door: Door, pulse: Pulse) -> None:
        """It is dead for certain: what it held is free now, and not only when its lease would end."""
        if pulse.worker is None:
            return
        with contextlib.suppress(FairleadError):  # then the leases end by themselves
            if pulse.left_over is None and self._cut_short:
                await self._give_back(door, pulse.worker)
                return
            if pulse.left_over is None:
                code = self.process.returncode
                log.error("worker_died", worker=pulse.worker, pid=self.process.pid, exit_code=code)
                await self._excuse(door, pulse.worker, pulse.apart)
                await door.expire(pulse.worker)
                return
            for task_id, fence, kind in pulse.left_over:
                if kind == "Failed":
                    await door.fail(
                        pulse.worker, Failed(task_id, fence, "timeout", "it did not stop in time")
                    )
                else:
                    await door.release(pulse.worker, Grant(task_id, fence))
            try:
                await door.workers.leave(pulse.worker)
            except InvalidInput:  # it left without knowing of some it held: an answer never reached it
                await door.expire(pulse.worker)

    async def _give_back(self, door: Door, worker: str) -> None:
        """It was stopped by us: none of its tasks is charged with that."""
        held = await door.workers.heartbeat(worker, draining=True)
        await door.release(worker, *(Grant(task_id) for task_id in (*held.leases, *held.stopping)))
        await door.expire(worker)

    async def _excuse(self, door: Door, worker: str, apart: list[tuple[str, int]]) -> None:
        """Who ran in a process of its own did not kill the worker, and is not charged with a crash.

        Not for ever: it may have found a way to.
        """
        innocent = [Grant(task_id, fence) for task_id, fence in apart if self._excused[task_id] < EXCUSES]
        self._excused.update(grant.id for grant in innocent)
        if innocent:
            await door.release(worker, *innocent)


class Supervisor:
    def __init__(self, plan: Plan, processes: int = 1) -> None:
        self._plan = plan
        self._processes = processes
        self._children: set[Child] = set()
        self._excused: Counter[str] = Counter()
        self._door: Door | None = None
        self._opening = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._grace = 0.0  # for children that are still starting
        self._worked = False
        self._exit_code = 0

    async def run(self, *, obey_signals: bool = True) -> int:
        """Until it is told to stop, or all have been drained; the exit code of the command."""
        if obey_signals:
            on_stop(self.stop, self.hurry)
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            first = group.create_task(self._keep(stack))
            while not (first.done() or self._has_worked()):
                await asyncio.sleep(LOOK_SECONDS)  # what is wrong with the app is said once, not by each
            for _ in range(1, self._processes):
                group.create_task(self._keep(stack))
        return self._exit_code

    def stop(self) -> None:
        """The children drain."""
        self._end(self._plan.options.grace)

    def hurry(self) -> None:
        """They give back at once what they still run."""
        self._end(0)

    def _end(self, grace: float) -> None:
        self._stopping.set()
        self._grace = grace
        for child in self._children:
            child.drain(grace)

    async def _keep(self, stack: AsyncExitStack) -> None:
        """One place among the processes: whoever dies in it is replaced."""
        pause = 0.0
        while not self._stopping.is_set():
            born = monotonic()
            code = await self._one_life(stack)
            if self._stopping.is_set() or code == DRAINED:
                return  # any other end is a death, also one with exit code 0
            away = code == NOT_REACHABLE
            if not self._has_worked() and not (away and await self._reopened()):
                # it cannot work as it is: another try would end the same
                self._exit_code = code if code > 0 else 1
                self.stop()
                return
            if away:
                pause = AWAY_PAUSE
            else:
                pause = 0.0 if monotonic() - born > SHORT_LIFE else min(LONGEST_PAUSE, pause * 2 + 0.1)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _one_life(self, stack: AsyncExitStack) -> int:
        child = await Child.start(self._plan, self._excused)
        self._children.add(child)
        if self._stopping.is_set():  # told to stop while it was being started
            child.drain(self._grace)
        try:
            if settings := await child.settings():
                await child.live(await self._open(stack, settings))
            self._has_worked()
            return await child.close()
        finally:
            self._children.discard(child)

    def _has_worked(self) -> bool:
        """Whether some child got as far as registering, be it one that is still there."""
        self._worked = self._worked or any(child.pulse and child.pulse.worker for child in self._children)
        return self._worked

    async def _reopened(self) -> bool:
        """Whether there is an embedded server again.

        The one that the child found may have ended with the command that owned it, before it could register.
        """
        if self._door is None or self._door.settings.engine.url:
            return False
        try:
            await self._door.reopen()
        except FairleadError:
            return False
        return True

    async def _open(self, stack: AsyncExitStack, settings: Settings) -> Door:
        """Opened by the supervisor first: an embedded server is to live as long as the supervisor."""
        async with self._opening:
            if self._door is None:
                self._door = await stack.enter_async_context(connected_door(settings))
        return self._door
