"""Between a worker's runs and the store: reports what ended and claims what there is room for, in one trip.

It asks only for what can start now, in batches when there is much. Two trips may be under way, each for up to
half of what the worker can hold: while the store works on one, the worker works on the other. What ends
meanwhile goes with the next, so the busier it is the larger the batches are.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from fairlead.backend import Backend
from fairlead.clock import monotonic
from fairlead.errors import (
    FairleadError,
    InvalidInput,
    NotAllowed,
    StoreLost,
    StoreUnavailable,
    UnknownWorker,
)
from fairlead.log.events import EventLog, Fact
from fairlead.model.reports import Completed, Failed, Grant, Handed
from fairlead.model.task import Task
from fairlead.store.store import Store
from fairlead.worker.begun import Gate
from fairlead.worker.context import HandlerMessage
from fairlead.worker.failures import facts_of, log_failure
from fairlead.worker.handler import Handler
from fairlead.worker.outcome import Report, Returned, Stop, bad_result
from fairlead.worker.progress import ProgressBuffer
from fairlead.worker.runner import Run, Runner

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to reach the store
LEAST_LEASE = 0.2  # of a lease, when a task is begun; who has less stops it again at once
MOST_REMEMBERED = 4096
LETTERS = "ab"  # of the trips that may be under way at once; the store remembers the last request of each

T = TypeVar("T")
log = EventLog("fairlead.worker")


class Claimer:
    def __init__(
        self,
        backend: Backend,
        worker: str,
        capacity: int,
        handlers: Mapping[str, Handler],
        gate: Gate,
        register: Callable[[], Awaitable[None]],
        tell_apart: Callable[[], None],
    ) -> None:
        self.running: dict[int, Run] = {}  # by fence: a task may be here twice, its older run being stopped
        self.runner = Runner(handlers, gate, self._hear, self._has_room, self._end, tell_apart)
        self._gate = gate
        self._backend = backend
        self._worker = worker
        self._capacity = capacity
        self._register = register
        self._tell_apart = tell_apart
        self._lease_seconds = backend.settings.lease_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._reports: list[Report] = []
        self._sayings = ProgressBuffer(backend, worker, self.runner.extend)
        self._most_per_trip = max(1, capacity // len(LETTERS))
        self._serving: list[asyncio.Task[None]] = []
        self._under_way = 0  # trips
        self._asked = 0  # tasks, by the trips under way
        self._telling = False
        self._is_heard = False  # something was said, and the loop will look at it soon
        self._hungry = True  # there may be something to claim
        self._open = True  # it still claims
        self._requests = 0
        # tasks with their fences, the latest, in order; and what the log says of them
        self._begun: dict[tuple[str, int], dict[str, Fact]] = {}
        self._heard: set[int] = set()  # fences of tasks that came by a call; the store has not been told yet
        self._synchronous = -math.inf, 0  # a moment before the last claim that was answered: here, there (ms)
        self._alarm: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()

    async def work(self) -> None:
        """Until it is closed and nothing is left in hand, or it gives up on what is left."""
        async with asyncio.TaskGroup() as group:
            self._serving = [group.create_task(self._serve(letter)) for letter in LETTERS]

    async def _serve(self, letter: str) -> None:
        while True:
            want = self._want()
            if self._sayings and not self._telling:
                await self._tell()
            elif not self._telling and (self._reports or (want and self._hungry)):
                await self._trip(letter, want)
            elif not self._open and not self.running and not self._under_way:
                self._news.set()  # so that the other one sees it too
                return
            else:
                self._news.clear()
                await self._news.wait()

    def _want(self) -> int:
        """How many more there is room for, besides those asked for already and those not reported yet."""
        unreported = max(0, len(self._reports) - self._most_per_trip)
        free = self._capacity - len(self.running) - self._asked - unreported
        return max(0, min(free, self._most_per_trip)) if self._open else 0

    def look(self) -> None:
        """There may be something to claim."""
        self._hungry = True
        self._news.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._open = False
        self._news.set()

    def give_up(self) -> None:
        """Some handlers do not stop, or the store cannot be reached: leave as it is."""
        for serving in self._serving:
            serving.cancel()

    def cancel(self, task_id: str) -> None:
        for run in self.running.values():
            if run.task.task_id == task_id:
                run.stop(Stop.CANCELLED)

    def take(self, handed: Handed) -> None:
        """A task that came with the call."""
        now, (sent, store_now) = monotonic(), self._synchronous
        # counted from before the claim that said we wait: the call may have lain unread for long
        lease_ends = min(now, sent + (handed.now - store_now) / 1000) + self._lease_seconds
        self._heard.add(handed.task.fence)
        self._begin(handed.task, now, lease_ends)
        self.look()

    async def give_back_unheard(self) -> None:
        """What the store has handed to this worker, which is about to leave: nobody reports any more."""
        _, claimed = await self._backend.report(self._worker, claim=1, heard=self._heard)
        unheard = [Grant(task.task_id, task.fence) for task in claimed.tasks]
        unbegun = [one.grant for one in self._reports if isinstance(one, Returned)]
        await self._backend.release(self._worker, *unheard, *unbegun)

    async def _trip(self, letter: str, want: int) -> None:
        reports = self._reports[: self._most_per_trip]
        del self._reports[: self._most_per_trip]
        self._asked += want
        self._under_way += 1
        try:
            await self._report_and_claim(letter, want, reports)
        finally:
            self._asked -= want
            self._under_way -= 1

    async def _report_and_claim(self, letter: str, want: int, reports: list[Report]) -> None:
        returned = [one.grant for one in reports if isinstance(one, Returned)]
        if returned:
            await self.insist(lambda: self._backend.release(self._worker, *returned))
        completed = [one for one in reports if isinstance(one, Completed)]
        failed = [one for one in reports if isinstance(one, Failed)]
        self._requests += 1
        request = f"{letter}{self._requests}"
        self._hungry = False
        # of the first attempt: a lease may have begun with it although its answer was lost
        sent = monotonic()
        heard = tuple(self._heard)
        answers, claimed = await self.insist(
            lambda: self._backend.report(
                self._worker, completed, failed, claim=want, idle=True, request=request, heard=heard
            )
        )
        if want:
            self._heard.difference_update(heard)
            self._synchronous = sent, claimed.now
        told: list[Completed | Failed] = [*completed, *failed]
        for report, answer in zip(told, answers, strict=True):
            if isinstance(answer, FairleadError):
                self._refused(report, answer)
        self._settle(reports)
        now = monotonic()
        for task in claimed.tasks:
            self._begin(task, now, sent + self._lease_seconds)
        if claimed.again or (want and len(claimed.tasks) >= want):
            self._hungry = True
        if claimed.next_alarm is not None:
            self._set_alarm((claimed.next_alarm - claimed.now) / 1000)
        if claimed.draining:
            self.close()

    def _begin(self, task: Task, now: float, lease_ends: float) -> None:
        # It came by a call, and again with the answer to a claim.
        if (begun := (task.task_id, task.fence)) in self._begun:
            return
        self._begun[begun] = facts_of(task)
        if len(self._begun) > MOST_REMEMBERED:
            del self._begun[next(iter(self._begun))]
        late = now > lease_ends - LEAST_LEASE * self._lease_seconds
        if late:  # it lay unread, or the answer to a claim took that long
            log.warning("came_late", worker=self._worker, task=task.task_id, fence=task.fence)
        # Closed while it was on its way, and perhaps past its grace: nobody would stop it.
        if late or not self._open:
            self._reports.append(Returned(task.task_id, task.fence))
            self._news.set()
            return
        run = self.running[task.fence] = self.runner.start(task, now, lease_ends)
        if run.apart:
            self._tell_apart()

    def _refused(self, report: Completed | Failed, problem: FairleadError) -> None:
        if isinstance(problem, InvalidInput) and isinstance(report, Completed):
            # without the reason, which may quote the result: the task's error has it
            facts = self._begun.get((report.task_id, report.fence or 0), {"task": report.task_id})
            log.error("task_failed", **facts, worker=self._worker, code="bad_result", traceback="")
            self._reports.append(bad_result(report.task_id, report.fence, problem))
        else:  # the lease was not ours any more: somebody else has the task now
            log.warning("report_refused", task=report.task_id, fence=report.fence, code=problem.code)

    def _settle(self, reports: list[Report]) -> None:
        """The store knows of them, but for those that are reported again."""
        again = {report.fence for report in self._reports}
        for report in reports:
            if report.fence is not None and report.fence not in again:
                self._gate.begun.discard(report.fence)

    def _set_alarm(self, seconds: float) -> None:
        """Something becomes runnable by time alone then."""
        if self._alarm:
            self._alarm.cancel()
        self._alarm = self._loop.call_later(max(0.0, seconds), self.look)

    def _end(self, run: Run, report: Report) -> None:
        del self.running[run.task.fence]
        if isinstance(report, Failed):
            log_failure(run.task, report, self._worker, run.facts)
        self._reports.append(report)
        self._news.set()

    def _hear(self, run: Run, said: HandlerMessage) -> None:
        """From any thread; in order, and before the end of the run that said it."""
        # kept here and now: however much a handler emits before it yields to the loop, it is bounded
        self._sayings.add(run, said)
        if not self._is_heard:
            self._is_heard = True
            self._loop.call_soon_threadsafe(self._look_soon)

    def _look_soon(self) -> None:
        self._is_heard = False
        self._news.set()

    def _has_room(self, run: Run) -> bool:
        """Whether a handler may say more. One that is stopped does not wait for that."""
        return run.stop_asked_at is not None or not self._sayings.is_full(run)

    async def _tell(self) -> None:
        """Nothing is reported meanwhile: what a run said must arrive before its end."""
        self._telling = True
        try:
            await self.insist(self._sayings.tell)
        finally:
            self._telling = False
            self._news.set()

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Until the store has answered. Nothing is given up meanwhile but by the leases' own end."""
        pause, lost = FIRST_PAUSE, False
        while True:
            try:
                if lost:  # opened again: it may know neither this worker nor what was declared
                    await self._register()
                    lost = False
                return await call()
            except (InvalidInput, NotAllowed):  # however often it is asked
                raise
            except UnknownWorker:  # given up as dead, or the store has forgotten it
                log.warning("register_again", worker=self._worker)
                await self.insist(self._register)
            except StoreLost as problem:
                if not (lost or isinstance(self._backend, Store)):  # with a store, its monitor reports it
                    log.error("store_lost", worker=self._worker, problem=str(problem))
                lost = True
            except StoreUnavailable as problem:
                if pause == FIRST_PAUSE:
                    log.warning("store_unavailable", worker=self._worker, problem=str(problem))
                with contextlib.suppress(FairleadError):  # the next attempt tells
                    await self._backend.reopen()
            except FairleadError as problem:
                log.error("store_fault", worker=self._worker, problem=str(problem))
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)
