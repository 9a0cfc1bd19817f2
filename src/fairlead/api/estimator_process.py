"""The process that makes forecasts: `python -m fairlead.api.estimator_process PARENT FD`."""

import asyncio
import os
import socket
import sys

import msgspec

from fairlead.api.estimating import FIRST_PAUSE, LONGEST_PAUSE, Order
from fairlead.background import cancel_all, loop_factory
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
    """Until the server process goes. Each of its messages names all namespaces to forecast from then on."""
    running: dict[str, tuple[Order, asyncio.Task[None]]] = {}
    async for message in await MessagePipe.over(end):
        orders = {order.namespace: order for order in msgspec.convert(message, list[Order])}
        gone = [task for name, (order, task) in running.items() if orders.get(name) != order]
        running = {name: known for name, known in running.items() if known[1] not in gone}
        await cancel_all(*gone)
        for name in orders.keys() - running.keys():
            running[name] = orders[name], asyncio.create_task(_keep_estimating(orders[name]))
    await cancel_all(*(task for _, task in running.values()))


async def _keep_estimating(order: Order) -> None:
    """Until cancelled: the server says when another caretaker is elected."""
    pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
    while True:
        began = loop.time()
        await _estimate(order)
        pause = FIRST_PAUSE if loop.time() - began > LONGEST_PAUSE else min(LONGEST_PAUSE, 2 * pause)
        await asyncio.sleep(pause)


async def _estimate(order: Order) -> None:
    """Until another caretaker is elected, or something is wrong with the namespace."""
    store = Store.connect(order.url, order.namespace)
    try:
        await store.epochs.join()
        await Estimator(store, order.who).run()
    except StoreUnavailable:
        pass  # the server reports it
    except FairleadError as problem:
        log.warning("estimates_wait", code=problem.code, problem=str(problem), namespace=order.namespace)
    except Exception as problem:
        log.error("estimates_failed", traceback=traceback_of(problem), namespace=order.namespace)
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
