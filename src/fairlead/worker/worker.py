"""A worker: one process's hands. It registers, claims and runs tasks until it is drained."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fairlead.backend import Backend
from fairlead.background import cancel_all, done_before
from fairlead.clock import monotonic
from fairlead.cron import Cron
from fairlead.errors import FairleadError, InvalidInput, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.model.reports import Failed, Handed
from fairlead.worker.begun import Begun, Gate
from fairlead.worker.claimer import Claimer
from fairlead.worker.deadlines import Deadlines
from fairlead.worker.failures import log_failure
from fairlead.worker.frames import taken_frames
from fairlead.worker.handler import Handler
from fairlead.worker.options import STOP_SECONDS, WorkerOptions
from fairlead.worker.outcome import Stop, stopped
from fairlead.worker.pipe import Pipe
from fairlead.worker.registration import Registration
from fairlead.worker.room import Room
from fairlead.worker.run import Run
from fairlead.worker.runner import Runner
from fairlead.worker.runs import Runs
from fairlead.worker.ticker import Ticker

NET_SECONDS = 5.0  # a wake-up call may be lost, or meet a worker that dies: look at least this often
GIVE_UP_SECONDS = 1.0  # between asking handlers to stop and giving them up, when the worker has drained
ROUNDS_TO_HEAR = 3  # of the event loop: until what came in on the pipe has been read and learned
LIFE_SECONDS = 0.5  # how often a worker shows its supervisor that its loop runs

log = EventLog("fairlead.worker")


class Worker:
    """`begun` is the register that it shares with its heartbeat, to which `pipe` leads.

    `room`: it shares its slots with the workers of other namespaces in this process. `supervised`: a parent
    process kills and replaces this one when a handler cannot be stopped. `declare`:
    what is done again before it registers again, because the store may have lost its data.
    """

    def __init__(
        self,
        backend: Backend,
        handlers: Mapping[str, Handler],
        crons: Sequence[Cron],
        options: WorkerOptions,
        pipe: Pipe,
        begun: Begun,
        *,
        supervised: bool = False,
        declare: Callable[[], Awaitable[None]] | None = None,
        room: Room | None = None,
    ) -> None:
        if not handlers:
            raise InvalidInput("tasks", "there is nothing to run: decorate a function with @fl.task")
        self._backend = backend
        self._crons = crons
        self._grace = options.grace
        self._pipe = pipe
        self._supervised = supervised
        self._lease_seconds = backend.settings.lease_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._gate = Gate(begun)
        self._registration = Registration(backend, handlers, options, declare)
        self.id = self._registration.worker_id
        self._runs = Runs(self.id, pipe)
        take_frames = partial(taken_frames, backend, self._registration)
        self._runner = Runner(handlers, self._gate, self._runs, backend, take_frames)
        self._deadlines = Deadlines(backend, self._registration, self._runs, pipe)
        self._claimer = Claimer(backend, self._registration, self._runs, self._runner, begun, room)
        self._ending: asyncio.TimerHandle | None = None
        self._ends_at = math.inf  # by the loop's clock; not every loop's handle can say it
        self._drained = asyncio.Event()
        self.ready = asyncio.Event()  # it has registered
        self.ended = asyncio.Event()  # it works no more, whatever the reason
        self.lost_heartbeat = False  # it ends because nobody prolongs its leases any more
        self.stuck = False  # it ends because of a handler that cannot be stopped

    @property
    def running(self) -> list[str]:
        """The ids of the tasks in hand."""
        return [run.task.task_id for run in self._runs.running.values()]

    async def run(self) -> None:
        """Until it is drained."""
        listening = self._loop.create_task(self._listen())
        registering = self._registration.until_answered(self._registration.register)
        if not await done_before(registering, self._drained.wait()):  # drained before the store has answered
            listening.cancel()
            self._pipe.send({"bye": []})
            return
        seconds = self._backend.settings.worker.heartbeat_seconds
        self._pipe.send({"worker": self.id, "beat_seconds": seconds, "lease_seconds": self._lease_seconds})
        self.ready.set()
        log.info("worker_started", worker=self.id, capacity=self._registration.capacity)
        duties = [self._wait_for_calls(), self._watch(), self._deadlines.confirm()]
        if self._crons:
            duties.append(Ticker(self._backend, self._crons).run())
        background = [listening, *(self._loop.create_task(duty) for duty in duties)]
        work = self._loop.create_task(self._claimer.work())
        try:
            await asyncio.wait([work, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in (work, *background):  # a duty that ended by itself ended by an error: it is raised
                if task.done():
                    task.result()
        finally:
            await cancel_all(work, *background)
            await self._leave()

    def drain(self, grace: float | None = None) -> None:
        """No new claims; what runs gets `grace` seconds, then it is given back. Again: the shorter counts."""
        if not self._drained.is_set():  # once, because the heartbeat answers that the worker drains
            self._pipe.send({"draining": True})
        self._drained.set()
        self._claimer.close()
        end = self._loop.time() + (self._grace if grace is None else grace)
        if end < self._ends_at:
            if self._ending:
                self._ending.cancel()
            self._ending, self._ends_at = self._loop.call_at(end, self._give_back), end
            log.info("worker_draining", worker=self.id, running=len(self._runs.running))

    def _give_back(self) -> None:
        self._runs.stop(Stop.DRAINED)
        self._loop.call_later(GIVE_UP_SECONDS, self._claimer.give_up)

    async def _wait_for_calls(self) -> None:
        """The store calls a worker that waits: there is something to claim, or news of what it runs."""
        # twice in a lease, so that every lease of every other worker is known of before it can run out
        net = min(NET_SECONDS, self._lease_seconds / 2)
        while True:
            try:
                called = await self._backend.workers.wait(self.id, net)
            except StoreUnavailable:
                await asyncio.sleep(0.2)
                with contextlib.suppress(FairleadError):
                    await self._backend.reopen()
                called = None
            if isinstance(called, Handed):
                self._claimer.take(called)
                await asyncio.sleep(0)  # it starts now: waiting for the next is no hurry
            else:
                self._obey(called or "")

    def _obey(self, called: str) -> None:
        word, _, about = called.partition(":")
        if word == "cancel":
            self._runs.stop(Stop.CANCELLED, about)
        elif word == "deadline":
            self._deadlines.ask(about)
        elif word == "frames":
            self._runs.call_for_frames(about)
        else:
            self._claimer.look()

    async def _listen(self) -> None:
        """What the heartbeat learned."""
        async for message in self._pipe:
            if "drain" in message:
                self.drain(message["drain"])
            elif "unknown" in message:
                await self._registration.until_answered(self._registration.register_again)
                self._claimer.look()
            elif "resumed" in message:
                self._gate.resume(message["resumed"], message["given_back"])
                self._claimer.look()  # to be in the line of idle workers again
            else:
                self._learn(message)
        # without a heartbeat no lease is prolonged
        log.error("heartbeat_lost", worker=self.id)
        self.lost_heartbeat = True
        self.drain(0)
        await asyncio.Event().wait()

    def _learn(self, beat: dict[str, Any]) -> None:
        for run in list(self._runs.running.values()):
            task_id = run.task.task_id
            if task_id in beat["cancelled"]:
                run.stop(Stop.CANCELLED)
            elif task_id in beat["lease_ends"]:
                run.lease_ends = beat["lease_ends"][task_id]
            elif run.claimed_at < beat["sent"]:  # not one that was claimed while the beat was on its way
                self._lose(run)
        self._deadlines.learn(beat)
        if beat["state"] == "draining":
            self.drain()

    async def _watch(self) -> None:
        """Stops runs whose leases are about to end: soon the task belongs to another worker."""
        margin = 0.2 * self._lease_seconds
        while True:
            for _ in range(ROUNDS_TO_HEAR):
                # a handler may just have blocked the loop for long: first read what came meanwhile
                await asyncio.sleep(0)
            now = monotonic()
            for run in list(self._runs.running.values()):
                if now > run.lease_ends - margin:
                    self._lose(run)
                if run.stop_asked_at is not None:
                    # a moment in any case: this process may just have woken from a sleep of many leases
                    self._press(run, now > max(run.lease_ends, run.stop_asked_at + margin / 2))
            self._runs.show_life()
            await asyncio.sleep(min(LIFE_SECONDS, margin / 2))

    def _lose(self, run: Run) -> None:
        if run.stop_asked_at is None:
            log.warning("lease_lost", worker=self.id, task=run.task.task_id, fence=run.task.fence)
        run.stop(Stop.LOST)

    def _press(self, run: Run, over: bool) -> None:
        """It was asked to stop and still runs. `over`: its lease has ended, the task may run elsewhere."""
        assert run.stop_asked_at is not None
        if over and run.place == "process":
            run.halt()
        elif self._supervised and (over or monotonic() > run.stop_asked_at + STOP_SECONDS):
            # only the end of this process ends it: let the others finish while its lease lasts
            self.stuck = self.stuck or self._ending is None
            self.drain(min(0.2 * self._lease_seconds, STOP_SECONDS))
            if over:
                self._claimer.give_up()

    async def _depart(self) -> None:
        try:
            await self._backend.workers.leave(self.id)
        except InvalidInput:  # it was handed one in its last moment, and has not read it
            await self._claimer.release_unacknowledged()
            await self._backend.workers.leave(self.id)

    async def _leave(self) -> None:
        left_over = []
        for run in self._runs.running.values():
            report = stopped(run.task, run.why or Stop.DRAINED)
            if isinstance(report, Failed):  # it does not stop, and ends with this process
                log_failure(run.task, report, self.id)
            code = report.code if isinstance(report, Failed) else None
            left_over.append((run.task.task_id, run.task.fence, code))
        with contextlib.suppress(FairleadError):
            if self._runs.running:
                await self._claimer.release_unacknowledged()
            else:
                await self._depart()
        self._pipe.send({"bye": left_over})
        await self._runner.close()
        log.info("worker_ended", worker=self.id, left_over=len(left_over))
