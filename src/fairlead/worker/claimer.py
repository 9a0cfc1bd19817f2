"""Between a worker's runs and the store: reports what ended and claims what there is room for, in one trip.

It asks only for what can start now, in batches when there is much. Two trips may be under way, each for up to
half of what the worker can hold: while the store works on one, the worker works on the other. What ends
meanwhile goes with the next, so the busier it is the larger the batches are.

Where claimers of several namespaces share the room of a process, none of them is handed a task unasked: it is
called, and claims if it has room. If it has none, it steps aside, so that another worker is called.
"""

import asyncio
import math
from collections.abc import Awaitable
from typing import TypeVar

from fairlead.backend import Backend
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, InvalidInput, StoreUnavailable
from fairlead.log.events import EventLog, Fact
from fairlead.model.reports import Completed, Failed, Grant, Handed
from fairlead.model.task import Task
from fairlead.worker.begun import Begun
from fairlead.worker.failures import facts_of
from fairlead.worker.outcome import Report, bad_result
from fairlead.worker.registration import Registration
from fairlead.worker.room import Room, Share
from fairlead.worker.runner import Runner
from fairlead.worker.runs import Runs

LEAST_LEASE = 0.2  # of a lease, when a task is begun; with less it would be stopped again at once
MOST_REMEMBERED = 4096
LETTERS = "ab"  # of the trips that may be under way at once; the store remembers the last request of each

A = TypeVar("A")
log = EventLog("fairlead.worker")


class Asked:
    """Slots that are kept for the answer to a claim.

    Where they are shared, only as long as the store answers: the other namespaces may have another one. What
    was claimed all the same is given back if there is no room for it.
    """

    def __init__(self, share: Share, want: int) -> None:
        self._share, self._want = share, want
        share.asked += want

    async def answered(self, reply: Awaitable[A]) -> A:
        try:
            return await reply
        except StoreUnavailable:
            if self._share.is_shared:
                self.end()
            raise

    def end(self) -> None:
        self._share.asked -= self._want
        self._want = 0
        self._share.notice()


class Claimer:
    def __init__(
        self,
        backend: Backend,
        registration: Registration,
        runs: Runs,
        runner: Runner,
        begun: Begun,
        room: Room | None = None,
    ) -> None:
        self._backend = backend
        self._registration = registration
        self._worker = registration.worker_id
        self._runs = runs
        self._runner = runner
        self._begun = begun
        self._lease_seconds = backend.settings.lease_ms / 1000
        self._most_per_trip = max(1, registration.capacity // len(LETTERS))
        self._serving: list[asyncio.Task[None]] = []
        room = room or Room(registration.capacity)
        self._share = room.share(lambda: len(runs.running), runs.changed.set)
        self._under_way = 0  # trips
        self._is_alone = False  # something is sent during which nothing may be reported or claimed
        self._is_waiting = False  # the store may call it
        self._open = True  # it still claims
        self._requests = 0
        # tasks with their fences, the latest, in order; and what the log records of them
        self._started: dict[tuple[str, int], dict[str, Fact]] = {}
        # fences of tasks that came by a call, for the next claim to acknowledge
        self._acknowledged: set[int] = set()
        self._last_claim = -math.inf, 0  # a moment before the last claim that was answered: here, there (ms)
        self._alarm: asyncio.TimerHandle | None = None

    async def work(self) -> None:
        """Until it is closed and nothing is left in hand, or it gives up on what is left."""
        async with asyncio.TaskGroup() as group:
            self._serving = [group.create_task(self._serve(letter)) for letter in LETTERS]

    async def _serve(self, letter: str) -> None:
        while True:
            self._share.notice()
            want = self._want()
            if self._is_alone:
                await self._wait_for_change()
            elif self._runs.progress:
                await self._send_progress()
            elif self._runs.reports or (want and self._share.may_claim):
                await self._trip(letter, want)
            elif self._must_step_aside(want):
                await self._step_aside()
            elif not self._open and not self._runs.running and not self._under_way:
                self._runs.changed.set()  # so that the other one sees it too
                return
            else:
                await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        self._runs.changed.clear()
        await self._runs.changed.wait()

    def _want(self) -> int:
        """How many more there is room for, apart from those asked for already and those not reported yet."""
        unreported = max(0, len(self._runs.reports) - self._most_per_trip)
        free = self._share.part - unreported
        return max(0, min(free, self._most_per_trip)) if self._open else 0

    def look(self) -> None:
        """There may be something to claim."""
        self._share.may_claim = self._open
        self._runs.changed.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._open = self._share.may_claim = False
        self._runs.changed.set()

    def give_up(self) -> None:
        """Some handlers do not stop, or the store cannot be reached: leave as it is."""
        for serving in self._serving:
            serving.cancel()

    def take(self, handed: Handed) -> None:
        """A task that came with the call."""
        now, (sent, store_now) = monotonic(), self._last_claim
        # counted from before the claim that said we wait: the call may have lain unread for long
        began = min(now, sent + (handed.now - store_now) / 1000)
        self._acknowledged.add(handed.task.fence)
        self._begin(handed.task, now, began)
        self.look()

    async def release_unacknowledged(self) -> None:
        """What the store has handed to this worker, which is about to leave and reports nothing any more."""
        _, claimed = await self._backend.report(self._worker, claim=1, acknowledged=self._acknowledged)
        unacknowledged = [Grant(task.task_id, task.fence) for task in claimed.tasks]
        unbegun = [one for one in self._runs.reports if isinstance(one, Grant)]
        await self._backend.release(self._worker, *unacknowledged, *unbegun)

    async def _trip(self, letter: str, want: int) -> None:
        reports = self._runs.reports[: self._most_per_trip]
        del self._runs.reports[: self._most_per_trip]
        asked = Asked(self._share, want)
        self._under_way += 1
        try:
            await self._report_and_claim(letter, want, reports, asked)
        finally:
            asked.end()
            self._under_way -= 1

    def _must_step_aside(self, want: int) -> bool:
        """It was called, or may be, and others have filled the room: a call would not be answered."""
        called = self._share.is_shared and self._is_waiting and self._share.may_claim
        return called and not want and not self._under_way

    async def _step_aside(self) -> None:
        """The store calls another worker, and this one again after its next claim."""
        self._requests += 1
        self._is_alone, self._is_waiting, request = True, False, f"aside{self._requests}"
        begun = [*self._runs.running, *(one.fence for one in self._runs.reports if one.fence is not None)]
        try:
            await self._registration.until_answered(
                lambda: self._backend.workers.stall(self._worker, request, begun)
            )
        finally:
            self._is_alone = False
            self._runs.changed.set()

    async def _report_and_claim(self, letter: str, want: int, reports: list[Report], asked: "Asked") -> None:
        until_answered = self._registration.until_answered
        given_back = [one for one in reports if isinstance(one, Grant)]
        if given_back:
            await until_answered(lambda: self._backend.release(self._worker, *given_back))
        completed = [one for one in reports if isinstance(one, Completed)]
        failed = [one for one in reports if isinstance(one, Failed)]
        self._requests += 1
        request = f"{letter}{self._requests}"
        if want or not self._share.is_shared:
            self._share.may_claim = False
        # of the first attempt: a lease may have begun with it although its answer was lost
        sent = monotonic()
        acknowledged = None if self._share.is_shared else tuple(self._acknowledged)
        answers, claimed = await until_answered(
            lambda: asked.answered(
                self._backend.report(
                    self._worker,
                    completed,
                    failed,
                    claim=want,
                    idle=True,
                    request=request,
                    acknowledged=acknowledged,
                )
            )
        )
        if want:
            self._acknowledged.difference_update(acknowledged or ())
            self._is_waiting = not claimed.again and len(claimed.tasks) < want
            self._last_claim = sent, claimed.now
        sent_reports: list[Completed | Failed] = [*completed, *failed]
        for report, answer in zip(sent_reports, answers, strict=True):
            if isinstance(answer, FairleadError):
                self._refused(report, answer)
        self._forget_begun(reports)
        now = monotonic()
        for task in claimed.tasks:
            self._begin(task, now, sent)
        if claimed.again or (want and len(claimed.tasks) >= want):
            self._share.may_claim = True
        if claimed.next_alarm is not None:
            self._set_alarm((claimed.next_alarm - claimed.now) / 1000)
        if claimed.draining:
            self.close()

    def _begin(self, task: Task, now: float, began: float) -> None:
        # It came by a call, and again with the answer to a claim.
        if (key := (task.task_id, task.fence)) in self._started:
            return
        self._started[key] = facts_of(task)
        if len(self._started) > MOST_REMEMBERED:
            del self._started[next(iter(self._started))]
        lease_ends = began + self._lease_seconds
        late = now > lease_ends - LEAST_LEASE * self._lease_seconds
        if late:  # it lay unread, or the answer to a claim took that long
            log.warning("came_late", worker=self._worker, task=task.task_id, fence=task.fence)
        # Closed while it was on its way, and perhaps past its grace: nobody would stop it.
        if late or not self._open or not self._share.take():
            self._runs.report(Grant(task.task_id, task.fence))
        else:
            self._runner.start(task, began, now, lease_ends)

    def _refused(self, report: Completed | Failed, problem: FairleadError) -> None:
        if isinstance(problem, InvalidInput) and isinstance(report, Completed):
            # without the reason, which may quote the result: the task's error has it
            facts = self._started.get((report.task_id, report.fence or 0), {"task": report.task_id})
            log.error("task_failed", **facts, worker=self._worker, code="bad_result", traceback="")
            self._runs.report(bad_result(report.task_id, report.fence, problem))
        else:  # the lease was not ours any more: another worker has the task now
            log.warning("report_refused", task=report.task_id, fence=report.fence, code=problem.code)

    def _forget_begun(self, reports: list[Report]) -> None:
        """The store knows how they ended, except for those that are reported again."""
        again = {report.fence for report in self._runs.reports}
        for report in reports:
            if report.fence is not None and report.fence not in again:
                self._begun.discard(report.fence)

    def _set_alarm(self, seconds: float) -> None:
        """Something becomes runnable by time alone then."""
        if self._alarm:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(max(0.0, seconds), self.look)

    async def _send_progress(self) -> None:
        """Nothing is reported meanwhile: what a run sent must arrive before its end."""
        self._is_alone = True
        try:
            send = self._runs.progress.send
            await self._registration.until_answered(lambda: send(self._backend, self._worker))
        finally:
            self._is_alone = False
            self._runs.changed.set()
