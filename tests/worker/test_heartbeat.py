"""What the heartbeat of a worker does besides keeping it alive."""

import logging
from collections.abc import Callable

import pytest

from fairlead import Fairlead
from fairlead.clock import now_ms
from fairlead.store.store import Store
from tests.store.namespace import raw
from tests.waiting import wait_until


async def test_without_a_gateway_a_worker_takes_dead_ones_off_the_list(
    fl: Fairlead, live_store: Store, open_store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "fairlead.upkeep")
    past = open_store(live_store.connection.keys.namespace, clock=lambda: str(now_ms() - 60_000))
    for n in range(130):  # more than one act names
        await past.workers.register(f"dead{n}")
    await past.close()

    @fl.task
    async def echo() -> None: ...

    async def only_one_is_listed() -> bool:
        return int(await raw(live_store).hlen(live_store.connection.keys.key("listed"))) == 1

    async with fl, fl.worker():
        await wait_until(only_one_is_listed)
    lines = [record.message for record in caplog.records if record.message.startswith("workers_lost")]
    assert lines == ["workers_lost count=130 named=5 running=0"]
