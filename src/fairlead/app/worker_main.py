"""One worker process under a supervisor: `python -m fairlead.app.worker_main PARENT FD REGISTER`."""

import asyncio
import os
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import msgspec

from fairlead.app.app import Fairlead
from fairlead.app.loading import load_app
from fairlead.background import done_before, loop_factory
from fairlead.errors import EngineFailed, FairleadError, StoreUnavailable, WrongNode
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.worker.begun import Begun
from fairlead.worker.child_process import become_child
from fairlead.worker.options import DRAINED, NOT_REACHABLE, STUCK, Plan
from fairlead.worker.pipe import MessagePipe
from fairlead.worker.worker import Worker

log = EventLog("fairlead.worker")


async def work(end: socket.socket, begun: Begun) -> int:
    pipe = await MessagePipe.over(end)
    plan = msgspec.convert(await pipe.receive(), Plan)
    app = load_app(plan.app) if plan.app else Fairlead()
    app.target = plan.target.or_else(app.target)
    settings = app.target.read_settings()
    pipe.send({"engine": settings.engine, "worker": settings.worker, "lease": settings.lease})
    message = await pipe.receive()
    if message is None or "drain" in message:  # the supervisor has gone, or is stopping
        return DRAINED
    app.waits_for_data = True
    async with AsyncExitStack() as stack:
        # Before the worker has registered, a message, or none, means that the supervisor stops or has gone.
        if not await done_before(stack.enter_async_context(app), pipe.receive()):
            return DRAINED
        handlers, options = app.handlers, plan.options
        if not plan.app:
            # only here: the HTTP client takes a third of the time in which a worker starts
            from fairlead.worker.services import calls_at_once, service_handlers

            handlers = await stack.enter_async_context(service_handlers(settings.services))
            capacity = options.capacity or calls_at_once(settings.services)
            options = replace(options, capacity=capacity, reserve=options.reserve or 0)
        declare = partial(app.declare, app.backend)
        worker = Worker(
            app.backend, handlers, app.crons, options, pipe, begun, supervised=True, declare=declare
        )
        await worker.run()
    await pipe.close()
    return STUCK if worker.stuck else DRAINED


def main() -> None:
    end, (register,) = become_child()
    begun = Begun(register)
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
    # neither runner.close nor sys.exit: a handler that never ends would be waited for
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
