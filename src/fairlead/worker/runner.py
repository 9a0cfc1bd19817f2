"""One task from claim to report: resolve, validate, start, time, run, classify, report."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fairlead.clock import monotonic
from fairlead.log.events import Fact
from fairlead.model.task import Task
from fairlead.worker.begun import Gate
from fairlead.worker.context import Context, HandlerMessage
from fairlead.worker.handler import Handler, RunIn
from fairlead.worker.outcome import Report, Returned, Stop, completed, facts_of, failed, stopped
from fairlead.worker.processes import Processes
from fairlead.worker.threads import RaisedInThread, Threads

MOST_SUSPECTS = 4  # tasks that may have killed a worker, each in a process of its own
SUSPECT_PATIENCE = 0.5  # seconds that a suspect waits for such a process
MOST_PATIENT = 12  # suspects that wait; more were lost with a whole machine, hardly one by its own doing


def _nothing(*_: Any) -> None:
    """There is no handler to stop or to inform yet."""


@dataclass(eq=False, slots=True)
class Run:
    """A task in this worker's hands. Times are monotonic."""

    task: Task
    handler: Handler
    claimed_at: float  # when its claim was answered
    lease_ends: float
    place: RunIn = field(init=False)
    suspect: bool = field(init=False)  # it may have killed a worker
    apart: bool = field(init=False)  # it runs in another process: if this one dies, it is not its doing
    why: Stop | None = None
    emitted: int = 0  # chunks of output
    dropped: int = 0  # of them, because they were more than could be sent
    facts: Mapping[str, Fact] = field(default_factory=dict)  # of its failure, for the log
    stop_asked_at: float | None = None
    deadline: float = 0.0
    timer: asyncio.TimerHandle | None = None  # None: it has ended
    context: Context | None = None
    halt: Callable[[], Any] = _nothing  # stops the handler, as its place can
    inform: Callable[[int], Any] = _nothing  # sends a handler in another process its new deadline

    def __post_init__(self) -> None:
        self.place = self.handler.run_in
        self.suspect = self.task.crash_count + self.task.loss_count > 0 and self.handler.can_run_apart
        self.apart = self.suspect or self.place == "process"

    def stop(self, why: Stop) -> None:
        """Asks the handler to stop. A second reason does not replace the first."""
        if self.stop_asked_at is None:
            self.why = why
            self.stop_asked_at = monotonic()
            if self.context:
                self.context.cancelled = True
            self.halt()


class Runner:
    """Runs tasks in the loop, in threads and in processes, and says how each ended."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        gate: Gate,
        said: Callable[[Run, HandlerMessage], None],
        has_room: Callable[[Run], bool],
        ended: Callable[[Run, Report], None],
        tell_apart: Callable[[], None],
    ) -> None:
        self._handlers = handlers
        self._gate = gate
        self._said = said
        self._has_room = has_room
        self._ended = ended
        self._tell_apart = tell_apart
        self._loop = asyncio.get_running_loop()
        self._threads = Threads()
        self._processes = Processes()
        self._suspects = asyncio.Semaphore(MOST_SUSPECTS)
        self._patient = 0  # suspects that wait for one of those
        self._places: dict[RunIn, Callable[[Run, dict[str, Any]], Any]] = {
            "loop": self._in_loop,
            "thread": self._in_thread,
            "process": self._in_process,
        }
        self._carrying: set[asyncio.Task[Report]] = set()  # the loop itself keeps no strong reference

    def start(self, task: Task, claimed_at: float, lease_ends: float) -> Run:
        run = Run(task, self._handlers[task.task_type], claimed_at, lease_ends)
        if run.handler.parameters.context:
            has_room, in_thread = partial(self._has_room, run), run.place == "thread"
            run.context = Context(task, partial(self._said, run), has_room, may_block=in_thread)
        self._time(run, claimed_at + task.timeout_ms / 1000)
        carrying = self._loop.create_task(self._outcome(run))
        run.halt = carrying.cancel
        self._carrying.add(carrying)
        carrying.add_done_callback(lambda done: self._finish(run, done))
        return run

    def extend(self, run: Run, deadline: float, deadline_ms: int) -> None:
        """It got more time, or had more: then the deadline is an earlier one."""
        if run.timer is None:  # it has ended meanwhile, and its process may run another
            return
        run.timer.cancel()
        self._time(run, max(deadline, run.deadline))
        if run.context:
            run.context.deadline_ms = deadline_ms
        run.inform(deadline_ms)

    def _time(self, run: Run, deadline: float) -> None:
        """It is stopped then."""
        run.deadline = deadline
        delay = max(0.0, deadline - monotonic())  # the loop's own clock may be another one
        run.timer = self._loop.call_later(delay, run.stop, Stop.TIMEOUT)

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()

    def _finish(self, run: Run, done: "asyncio.Task[Report]") -> None:
        assert run.timer
        run.timer.cancel()
        run.timer = None
        self._carrying.discard(done)
        # cancelled: it was stopped before its first step
        self._ended(run, stopped(run.task, run.why or Stop.DRAINED) if done.cancelled() else done.result())

    async def _outcome(self, run: Run) -> Report:
        try:
            if not await self._gate.passes(run.task.fence):
                return Returned(run.task.task_id, run.task.fence)
            arguments = run.handler.arguments(run.task)
            if run.handler.parameters.context:
                arguments[run.handler.parameters.context] = run.context
            result = await self._call(run, arguments)
        except BaseException as problem:  # SystemExit too: a handler must not end the worker
            cause = _cause(problem)
            if run.why is not None:
                return stopped(run.task, run.why, cause)
            run.facts = facts_of(cause)
            return failed(run.task, cause)
        return completed(run.task, result) if run.why is None else stopped(run.task, run.why)

    async def _call(self, run: Run, arguments: dict[str, Any]) -> Any:
        """A task that may have killed a worker runs in a process of its own, so that it kills only that.

        A few at a time: when a whole machine was lost, all that ran there are suspects, and they must not
        wait for each other. Who finds no free process soon runs where its handler says.
        """
        if not run.suspect or run.place == "process":
            return await self._places[run.place](run, arguments)
        if not await self._finds_process():
            run.apart = False
            self._tell_apart()
            await asyncio.sleep(0)  # so that it is told before the handler can kill this process
            return await self._places[run.place](run, arguments)
        run.place = "process"
        try:
            return await self._in_process(run, arguments)
        finally:
            self._suspects.release()

    async def _finds_process(self) -> bool:
        if self._suspects.locked() and self._patient >= MOST_PATIENT:
            return False
        self._patient += 1
        try:
            async with asyncio.timeout(SUSPECT_PATIENCE):
                return await self._suspects.acquire()
        except TimeoutError:
            return False
        finally:
            self._patient -= 1

    async def _in_loop(self, run: Run, arguments: dict[str, Any]) -> Any:
        called = run.handler.function(**arguments)
        return await called if run.handler.is_async else called

    async def _in_thread(self, run: Run, arguments: dict[str, Any]) -> Any:
        call = await self._threads.start(lambda: run.handler.function(**arguments))
        run.halt = call.interrupt
        if run.why is not None:  # stopped before there was a thread to interrupt
            call.interrupt()
        try:
            return await call.result()
        finally:
            self._threads.done()

    async def _in_process(self, run: Run, arguments: dict[str, Any]) -> Any:
        async with self._processes.borrowed() as process:
            run.halt, run.inform = process.halt, process.inform
            said, has_room = partial(self._said, run), partial(self._has_room, run)
            return await process.call(run.task, run.handler, said, has_room)


def _cause(problem: BaseException) -> BaseException:
    return problem.problem if isinstance(problem, RaisedInThread) else problem
