"""One task from claim to report: resolve, validate, start, time, run, classify, report."""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from fairlead import tracing
from fairlead.backend import Backend
from fairlead.errors import FairleadError
from fairlead.model.reports import Completed, Grant
from fairlead.model.task import Task
from fairlead.worker.begun import Gate
from fairlead.worker.context import Context, current_backend
from fairlead.worker.files import asking, granted
from fairlead.worker.frames import ClientFrames, TakeFrames
from fairlead.worker.handler import Handler, RunIn
from fairlead.worker.outcome import Report, Stop, failed, stopped
from fairlead.worker.processes import Processes
from fairlead.worker.run import Run, ignore
from fairlead.worker.runs import Runs
from fairlead.worker.threads import RaisedInThread, Threads

MOST_SUSPECTS = 4  # tasks that may have killed a worker, each in its own process
SUSPECT_PATIENCE = 0.5  # seconds that a suspect waits for such a process
MOST_PATIENT = 12  # suspects that wait; more were lost with a whole machine, hardly one by its own doing


class Runner:
    """Runs tasks in the loop, in threads and in processes, and says how each ended."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        gate: Gate,
        runs: Runs,
        backend: Backend,
        take_frames: TakeFrames,
    ) -> None:
        self._handlers = handlers
        self._take_frames = take_frames
        self._gate = gate
        self._runs = runs
        self._backend = backend
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

    def start(self, task: Task, began: float, claimed_at: float, lease_ends: float) -> None:
        """`began`: when its lease did, here, or a moment before."""
        run = Run(task, self._handlers[task.task_type], claimed_at, lease_ends)
        if task.interactive:
            run.frames = ClientFrames(partial(self._take_frames, Grant(task.task_id, task.fence)))
        if run.handler.parameters.context:
            run.context = self._context(run)
        if task.tier and task.deadline and task.started_at:  # its tier ends whenever it was claimed
            run.set_deadline(began + (task.deadline - task.started_at) / 1000)
        else:
            run.set_deadline(claimed_at + task.timeout_ms / 1000)
        carry_out = partial(self._outcome, run)
        traced = tracing.active and tracing.active.run(task, carry_out, self._runs.worker)
        carrying = self._loop.create_task(traced or carry_out())
        run.halt = carrying.cancel
        self._carrying.add(carrying)
        carrying.add_done_callback(lambda done: self._finish(run, done))
        self._runs.add(run)

    def _context(self, run: Run) -> Context:
        hear, has_room = partial(self._runs.hear, run), partial(self._runs.has_room, run)
        in_thread = run.place == "thread"
        return Context(
            run.task,
            hear,
            has_room,
            may_block=in_thread,
            ask=asking(self._backend, run.task),
            loop=None if in_thread else self._loop,
            fetch_frames=run.frames.fetch if run.frames else None,
        )

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()

    def _finish(self, run: Run, done: "asyncio.Task[Report]") -> None:
        run.end()
        self._carrying.discard(done)
        # cancelled: it was stopped before its first step
        report = stopped(run.task, run.why or Stop.DRAINED) if done.cancelled() else done.result()
        self._runs.end(run, report)

    async def _outcome(self, run: Run) -> Report:
        current_backend.set(self._backend)
        try:
            if not await self._gate.passes(run.task.fence):
                return Grant(run.task.task_id, run.task.fence)
            arguments = run.handler.arguments(run.task)
            if run.handler.parameters.context:
                arguments[run.handler.parameters.context] = run.context
            result = await self._call(run, arguments)
        except BaseException as problem:  # SystemExit too: a handler must not end the worker
            cause = problem.problem if isinstance(problem, RaisedInThread) else problem
            why = run.why or (Stop.DEADLINE if run.overdue else None)
            if why is not None:
                return stopped(run.task, why, cause)
            if isinstance(cause, FairleadError):
                run.facts = cause.facts
            return failed(run.task, cause)
        if run.why is not None:
            return stopped(run.task, run.why)
        return Completed(run.task.task_id, run.task.fence, result, truncated=run.overdue)

    async def _call(self, run: Run, arguments: dict[str, Any]) -> Any:
        """A task that may have killed a worker runs in its own process, so that it kills only that.

        A few at a time: when a whole machine was lost, all that ran there are suspects, and they must not
        wait for each other. One that finds no free process soon runs where its handler says.
        """
        if not run.suspect or run.place == "process":
            return await self._places[run.place](run, arguments)
        if not await self._finds_process():
            run.apart = False
            self._runs.show_life()
            await asyncio.sleep(0)  # so that the message leaves before the handler can kill this process
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
        context = copy_context()
        call = await self._threads.start(lambda: context.run(run.handler.function, **arguments))
        run.halt = call.interrupt
        if run.why is not None:  # stopped before there was a thread to interrupt
            call.interrupt()
        try:
            return await call.result
        finally:
            self._threads.done()

    async def _in_process(self, run: Run, arguments: dict[str, Any]) -> Any:
        async with self._processes.borrowed() as process:
            process.begin(run.task, run.handler, tracing.current())
            run.halt, run.inform = process.halt, process.inform
            run.tell()  # what has changed since it was claimed
            hear, has_room = partial(self._runs.hear, run), partial(self._runs.has_room, run)
            grant = partial(granted, self._backend, run.task)
            try:
                return await process.result(hear, has_room, grant, run.frames)
            finally:
                run.inform = ignore  # the process may run another
