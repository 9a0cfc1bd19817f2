"""In a process beside a server: what it is to do, as the server orders it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from fairlead.api.side_process import FIRST_PAUSE, LONGEST_PAUSE, Order
from fairlead.background import cancel_all, loop_factory
from fairlead.worker.child_process import become_child
from fairlead.worker.pipe import MessagePipe

NICE = 5  # what serves goes first

O = TypeVar("O", bound=Order)  # noqa: E741
#: For one namespace: until cancelled, or until it fails and is to be started again.
Work = Callable[[O, MessagePipe], Awaitable[None]]


def run_orders(kind: type[O], work: Work[O]) -> None:
    """The main program."""
    end, _ = become_child()
    os.nice(NICE)

    async def run() -> None:
        await follow_orders(await MessagePipe.over(end), kind, work)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())
    sys.exit()


async def follow_orders(pipe: MessagePipe, kind: type[O], work: Work[O]) -> None:
    """Until the server process goes. Each of its messages names all namespaces to work for from then on."""
    running: dict[str, tuple[O, asyncio.Task[None]]] = {}
    async for message in pipe:
        orders = {order.namespace: order for order in (msgspec.convert(one, kind) for one in message)}
        gone = [task for name, (order, task) in running.items() if orders.get(name) != order]
        running = {name: known for name, known in running.items() if known[1] not in gone}
        await cancel_all(*gone)
        for name in orders.keys() - running.keys():
            running[name] = orders[name], asyncio.create_task(_keep_working(orders[name], pipe, work))
    await cancel_all(*(task for _, task in running.values()))


async def _keep_working(order: O, pipe: MessagePipe, work: Work[O]) -> None:
    """Until cancelled: the server says when another caretaker is elected."""
    pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
    while True:
        began = loop.time()
        await work(order, pipe)
        pause = FIRST_PAUSE if loop.time() - began > LONGEST_PAUSE else min(LONGEST_PAUSE, 2 * pause)
        await asyncio.sleep(pause)
