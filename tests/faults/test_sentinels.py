"""A primary that Sentinels replace: every connection of a process follows it by itself."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from fairlead import errors
from fairlead.model.states import State
from fairlead.settings import EngineSettings, Settings
from fairlead.store.doctor.doctor import examine
from tests.connections import is_answered
from tests.sentinels import Deployment, Node, deployment, opened
from tests.store.namespace import new
from tests.waiting import wait_until


def killed(_: Deployment, primary: Node) -> None:
    primary.kill()


def stopped(_: Deployment, primary: Node) -> None:
    primary.signal(signal.SIGSTOP)


def replaced(deployed: Deployment, _: Node) -> None:
    deployed.sentinels[0].ask("SENTINEL", "FAILOVER", "jobs")


@pytest.mark.parametrize("how", [killed, stopped, replaced])
async def test_acts_waits_and_subscriptions_follow_the_primary(
    how: Callable[[Deployment, Node], None],
) -> None:
    kind = "redis" if how is replaced else "valkey"
    async with deployment(kind) as deployed, opened(deployed.url) as store:
        before = new()
        await store.workers.register("w")
        await store.submit_one(before)
        primary = deployed.primary()
        waiting = asyncio.create_task(store.workers.wait("w", 60))
        async with store.live.watch() as events:
            assert await anext(events) is None
            assert primary.ask("WAIT", 2, 5000) == 2
            how(deployed, primary)
            after = await deployed.another_is_primary(primary)
            await wait_until(partial(is_answered, store.promote), because="acts find the new primary")
            there = f"127.0.0.1:{after.port}"
            await wait_until(lambda: store.connection.address == there, because="the old primary is left")
            await wait_until(partial(is_answered, store.promote))
            with pytest.raises(errors.StoreUnavailable):
                await waiting
            assert await store.workers.wait("w", 0.01) is None
            assert await anext(events) is None, "a watcher learns that it may have missed something"
            later = new()
            await store.submit_one(later)
            event = await anext(events)
            assert event and event.task_id == later.task_id
        assert (await store.get(before.task_id)).status is State.QUEUED
        assert await examine(store.connection) == []


async def test_a_primary_that_is_being_replaced_confirms_nothing_more() -> None:
    """Its other replica has every change; the one that is to take over has come and left it unseen."""
    async with deployment() as deployed:
        settings = replace(Settings(), engine=EngineSettings(url=deployed.url, replicas=1))
        primary, *others = deployed.servers
        others[0].kill()
        await wait_until(lambda: len(primary.ask("ROLE")[2]) == 1)
        async with opened(deployed.url, settings) as store:
            others[0].start(replica_of=primary)
            await deployed.settled()
            for server in others:  # so that nobody is promoted before it is killed
                server.signal(signal.SIGSTOP)
            replaced(deployed, primary)
            await wait_until(lambda: deployed.chosen() is not None, because="a replica is chosen")
            chosen = deployed.chosen()
            for server in others:
                server.kill() if server is chosen else server.signal(signal.SIGCONT)
            await wait_until(lambda: len(primary.ask("ROLE")[2]) == 1, because="it has left the primary")
            assert primary.ask("WAIT", 1, 5000) == 1
            with pytest.raises(errors.NotReplicated, match="being replaced"):
                await store.submit_one(new())
            await wait_until(partial(is_answered, store.promote), because="the fail-over was given up")
            assert await examine(store.connection) == []
