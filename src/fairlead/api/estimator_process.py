"""The process that makes forecasts: `python -m fairlead.api.estimator_process PARENT FD`."""

import asyncio
import os
import socket
import sys

import msgspec

from fairlead.api.estimating import Order
from fairlead.background import done_before, loop_factory
from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from fairlead.worker.child_process import become_child
from fairlead.worker.pipe import MessagePipe

NICE = 5  # what serves goes first

log = EventLog("fairlead.upkeep")


async def estimate(end: socket.socket) -> None:
    """Until the server process goes, or another caretaker is elected."""
    pipe = await MessagePipe.over(end)
    order = msgspec.convert(await pipe.receive(), Order)
    store = Store.connect(order.url, order.namespace)
    try:
        await store.epochs.join()
        await done_before(Estimator(store, order.who).run(), pipe.receive())
    except StoreUnavailable:
        pass  # the server reports it, and starts another process when the store is back
    except FairleadError as problem:
        log.warning("estimates_wait", code=problem.code, problem=str(problem))
    except Exception as problem:
        log.error("estimates_failed", traceback=traceback_of(problem))
    finally:
        await store.close()


def main() -> None:
    end, _ = become_child()
    os.nice(NICE)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(estimate(end))
    sys.exit()


if __name__ == "__main__":
    main()
