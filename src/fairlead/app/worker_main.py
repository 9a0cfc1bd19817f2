"""One worker process under a supervisor: `python -m fairlead.app.worker_main PARENT FD REGISTER...`."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import msgspec

from fairlead import tracing
from fairlead.app.app import Fairlead
from fairlead.app.loading import load_app
from fairlead.backend import Backend
from fairlead.background import done_before, loop_factory
from fairlead.client.opening import joined_backend
from fairlead.errors import EngineFailed, FairleadError, StoreUnavailable, WrongNode
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.settings import Settings
from fairlead.worker.begun import Begun
from fairlead.worker.child_process import become_child
from fairlead.worker.options import DRAINED, NOT_REACHABLE, STOP_SECONDS, STUCK, Plan
from fairlead.worker.pipe import Branch, Branches, MessagePipe
from fairlead.worker.room import Room
from fairlead.worker.worker import Worker

AGAIN_SECONDS = 1.0  # between two attempts to join a namespace while others are served

log = EventLog("fairlead.worker")


async def work(end: socket.socket, begun: Sequence[Begun]) -> int:
    pipe = await MessagePipe.over(end)
    plan = msgspec.convert(await pipe.receive(), Plan)
    app = load_app(plan.app) if plan.app else Fairlead()
    targets = plan.targets(app.target)
    app.target, app.waits_for_data = targets[0], True
    settings = [target.read_settings() for target in targets]
    tracing.export(settings[0].tracing, tracing.WORKER)  # after the app, which may set a provider of its own
    pipe.send([{"engine": one.engine, "worker": one.worker, "lease": one.lease} for one in settings])
    message = await pipe.receive()
    if message is None or "drain" in message:  # the supervisor has gone, or is stopping
        return DRAINED
    branches = Branches(pipe, len(targets))
    workers = Workers(app, plan, settings)
    try:
        async with asyncio.TaskGroup() as group:
            for number, branch in enumerate(branches.all):
                group.create_task(workers.work_in(number, branch, begun[number]))
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
    finally:
        await branches.close()
    await pipe.close()
    return STUCK if workers.is_stuck else DRAINED


class Workers:
    """Those of this process: one for each namespace that it claims from, all of which share its slots."""

    def __init__(self, app: Fairlead, plan: Plan, settings: Sequence[Settings]) -> None:
        self._workers: list[Worker] = []
        self._backends: dict[int, Backend] = {}
        self._app = app
        self._plan = plan
        self._settings = settings
        self._room: Room | None = None  # one for all, if there are several
        self._options = plan.options
        if len(settings) > 1:
            capacity = plan.options.capacity or settings[0].worker.capacity
            self._room, self._options = Room(capacity), replace(plan.options, capacity=capacity)

    async def work_in(self, number: int, branch: Branch, begun: Begun) -> None:
        """Until it is drained there. A namespace that cannot be reached does not hold up the others."""
        while True:
            try:
                async with AsyncExitStack() as stack:
                    # before the worker has registered, any message means that the supervisor stops
                    if await done_before(self._join(stack, number), branch.receive()):
                        await self._work(stack, number, branch, begun)
                return
            except StoreUnavailable as problem:
                if self._room is None or isinstance(problem, WrongNode):
                    raise
                name = self._settings[number].engine.namespace
                log.warning("namespace_unavailable", namespace=name, problem=str(problem))
            if not await done_before(asyncio.sleep(AGAIN_SECONDS), branch.receive()):
                return

    async def _join(self, stack: AsyncExitStack, number: int) -> None:
        if number == 0:
            backend = (await stack.enter_async_context(self._app)).backend
        else:
            joined = joined_backend(self._settings[number], self._app, waits=True)
            backend = await stack.enter_async_context(joined)
        self._backends[number] = backend
        self._app.served = [*self._backends.values()]

    async def _work(self, stack: AsyncExitStack, number: int, branch: Branch, begun: Begun) -> None:
        app, backend, options = self._app, self._backends[number], self._options
        handlers = app.handlers
        if not self._plan.app:
            # only here: the HTTP client takes a third of the time in which a worker starts
            from fairlead.worker.services import calls_at_once, service_handlers

            services = self._settings[number].services
            handlers = await stack.enter_async_context(service_handlers(services))
            capacity = options.capacity or calls_at_once(services)
            options = replace(options, capacity=capacity, reserve=options.reserve or 0)
        worker = Worker(
            backend,
            handlers,
            app.crons,
            options,
            branch,
            begun,
            supervised=True,
            declare=partial(app.declare, backend),
            room=self._room,
        )
        self._workers.append(worker)
        await worker.run()
        if worker.stuck or worker.lost_heartbeat:  # only the end of this process ends a handler
            for other in self._workers:
                other.drain(STOP_SECONDS)

    @property
    def is_stuck(self) -> bool:
        return any(worker.stuck for worker in self._workers)


def main() -> None:
    end, registers = become_child()
    begun = [Begun(register) for register in registers]
    for register in registers:
        os.close(register)
    runner = asyncio.Runner(loop_factory=loop_factory())
    try:
        code = runner.run(work(end, begun))
    except FairleadError as problem:
        print(f"fairlead: {problem}", file=sys.stderr)
        is_away = isinstance(problem, StoreUnavailable | EngineFailed) and not isinstance(problem, WrongNode)
        code = NOT_REACHABLE if is_away else 2
    except Exception as problem:
        log.error("worker_crashed", traceback=traceback_of(problem))
        code = 1
    tracing.close()
    # neither runner.close nor sys.exit: a handler that never ends would be waited for
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
