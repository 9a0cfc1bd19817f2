"""Lost replies, silent servers, cancelled calls: an act happens at most once and no reply goes astray."""

import asyncio
import random
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from fairlead import errors
from fairlead.model.key import Identity
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store import subscription
from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import READS_AT_ONCE
from fairlead.store.store import Store
from tests.connections import is_answered
from tests.faults.replicas import is_linked, primary_and_replica, promote
from tests.faults.wire import Wire, wire
from tests.reading import events_of
from tests.servers import Server, running
from tests.waiting import wait_until


async def test_a_lost_reply_never_makes_an_act_happen_twice(
    live_store: Store, lossy: tuple[Wire, Store]
) -> None:
    line, store = lossy
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    line.lose_reply = lambda request: b"FCALL" in request.upper() and dice.random() < 0.3
    await live_store.limits.set("gpu", Slots(limit=3))
    await live_store.workers.register("w", capacity=5)
    tasks = [NewTask(task_type="draw", limits={"gpu": 1}, max_retries=0) for _ in range(60)]
    for task in tasks:
        await until_answered(partial(store.submit_one, task))
    done: set[str] = set()
    for round_ in range(1000):
        claimed = await until_answered(partial(store.claim, "w", 5, request=f"claim-{round_}"))
        for task in claimed.tasks:
            assert task.attempt == 1, "nobody else has this namespace, so every task starts once"
            completed, failed = (
                Completed(task.task_id, task.fence),
                Failed(task.task_id, task.fence, retriable=False),
            )
            works = dice.random() < 0.8
            report = partial(store.complete, "w", completed) if works else partial(store.fail, "w", failed)
            (answer,) = await until_answered(report)
            assert answer in (State.COMPLETED, State.FAILED)
            done.add(task.task_id)
        if len(done) == len(tasks):
            break
    assert done == {task.task_id for task in tasks}
    assert line.lost > 20
    starts = [event for event in await events_of(live_store) if event["act"] == "claim"]
    assert len(starts) == len(tasks)


async def until_answered(call: Callable[[], Any]) -> Any:
    """Repeats the call with the same ids until there is an answer, as a careful caller does."""
    while True:
        try:
            return await call()
        except errors.StoreUnavailable:
            continue


async def test_a_cancelled_call_never_hands_its_reply_to_the_next(
    live_store: Store, lossy: tuple[Wire, Store]
) -> None:
    _, store = lossy
    tasks = [NewTask(task_type="echo", parameters={"n": n}) for n in range(200)]
    await live_store.submit(*tasks)
    dice = random.Random(7)
    for n in range(200):
        call = asyncio.ensure_future(store.get(tasks[n].task_id))
        for _ in range(dice.randrange(12)):
            await asyncio.sleep(0)
        call.cancel()
        other = dice.randrange(200)
        found = await store.get(tasks[other].task_id)
        assert found.parameters == {"n": other}
        await asyncio.gather(call, return_exceptions=True)


async def test_a_call_can_be_cancelled_at_every_point(server: Server) -> None:
    outcomes: list[bool | None] = []
    for steps in range(60):
        store = Store.connect(server.url, "cancelled")  # a new connection: it can be cancelled at more points
        call = asyncio.ensure_future(store.get(NewTask(task_type="echo").task_id))
        for _ in range(steps):
            await asyncio.sleep(0)
        accepted = call.cancel()
        await asyncio.wait([call])
        outcomes.append(call.cancelled() if accepted else None)
        if not call.cancelled():
            assert isinstance(call.exception(), errors.UnknownTask)
        await store.close()
    assert True in outcomes
    assert False not in outcomes, "a cancellation was swallowed"


async def test_an_abandoned_call_does_not_fail_the_others(lossy: tuple[Wire, Store]) -> None:
    line, store = lossy
    connection = store.connection
    await store.stats()  # the connection is made
    line.silent = True
    abandoned = asyncio.ensure_future(connection.guard(connection.shared.call(("ECHO", "a")), 0.3))
    patient = asyncio.ensure_future(connection.guard(connection.shared.call(("ECHO", "b")), 20))
    with pytest.raises(errors.StoreUnavailable):
        await abandoned
    later = asyncio.ensure_future(connection.guard(connection.shared.call(("ECHO", "c")), 20))
    await wait_until(lambda: line.connections == 2, because="a call after the silence has a new connection")
    line.silent = False
    assert (await patient, await later) == ([b"b"], [b"c"])
    await wait_until(lambda: line.connections == 1, because="the old connection is closed")


async def test_the_connection_is_kept_when_the_server_still_answers(lossy: tuple[Wire, Store]) -> None:
    """Earlier calls were answered meanwhile: a new connection would not be answered sooner."""
    connection = lossy[1].connection
    before = await connection.guard(connection.shared.call(("CLIENT", "ID")))
    pauses = [connection.guard(connection.shared.call(("BLPOP", "nothing", 0.5)), 20) for _ in range(4)]
    paused = asyncio.gather(*pauses)
    abandoned = asyncio.ensure_future(connection.guard(connection.shared.call(("ECHO", "a")), 1.5))
    with pytest.raises(errors.StoreUnavailable):
        await abandoned
    assert await connection.guard(connection.shared.call(("CLIENT", "ID")), 20) == before
    assert await paused == [[None]] * 4


async def test_a_silent_server_is_unavailable_within_two_seconds_and_service_resumes() -> None:
    with running("valkey") as server:
        store = Store.connect(server.url, "silent")
        await store.open()
        server.process.send_signal(signal.SIGSTOP)
        # by the timers of one loop: a machine that hangs for a while delays both
        call = asyncio.create_task(store.submit_one(NewTask(task_type="echo")))
        late = asyncio.create_task(asyncio.sleep(3))
        await asyncio.wait({call, late}, return_when=asyncio.FIRST_COMPLETED)
        assert call.done(), "it is still waited for"
        with pytest.raises(errors.StoreUnavailable):
            await call
        late.cancel()
        server.process.send_signal(signal.SIGCONT)
        await store.submit_one(NewTask(task_type="echo"))
        await store.close()


async def test_a_crowd_of_reads_gives_a_silent_server_up_all_at_once() -> None:
    """Not one after the other: queued calls get no answer either."""
    with running("valkey") as server:
        store = Store.connect(server.url, "silent")
        await store.open()
        await store.stats()
        server.process.send_signal(signal.SIGSTOP)
        pieces = [("ECHO", "piece")] * 100
        reads: list[asyncio.Task[Any]]
        reads = [asyncio.create_task(store.stats()) for _ in range(5 * READS_AT_ONCE)]
        reads += [asyncio.create_task(read_in_pieces(store.connection, pieces)) for _ in range(20)]
        late = asyncio.create_task(asyncio.sleep(4))
        call = asyncio.ensure_future(asyncio.wait(reads))
        await asyncio.wait({call, late}, return_when=asyncio.FIRST_COMPLETED)
        assert call.done(), "some are still waited for"
        assert all(isinstance(read.exception(), errors.StoreUnavailable) for read in reads)
        late.cancel()
        server.process.send_signal(signal.SIGCONT)
        await store.stats()
        await store.close()


async def test_a_server_that_is_gone_is_unavailable_and_a_new_one_is_found_again() -> None:
    with running("valkey", "--appendonly", "yes", "--appendfsync", "always") as server:
        store = Store.connect(server.url, "gone")
        await store.open()
        before = NewTask(task_type="echo")
        await store.submit_one(before)
        server.process.kill()
        server.process.wait()
        with pytest.raises(errors.StoreUnavailable):
            await store.stats()
        with pytest.raises(errors.StoreUnavailable):
            await store.open()
        again = await asyncio.create_subprocess_exec(
            *server.process.args,
            stdout=asyncio.subprocess.DEVNULL,  # type: ignore[misc]
        )
        try:
            await wait_until(partial(is_answered, store.open), because="the new one is found")
            assert (await store.get(before.task_id)).status is State.QUEUED
            assert (await store.submit_one(NewTask(task_type="echo"))).status is State.QUEUED
            await store.close()
        finally:
            again.kill()
            await again.wait()


async def test_a_primary_that_became_a_replica_is_left_for_the_server_behind_the_same_address(
    tmp_path: Path,
) -> None:
    with primary_and_replica() as (old, new):
        await wait_until(lambda: is_linked(new), 30, "the replica follows")
        async with wire(old.url, tmp_path) as (line, url), Store.connect(url, "moved") as store:
            calls = (
                partial(store.workers.register, "w"),
                partial(store.tickets.make, Identity(None, "ann", ("read",))),
                partial(store.workers.wait, "w", 0.01),
            )
            for call in calls:
                await call()  # each has a connection now
            promote(new, old)
            with redis.Redis.from_url(old.url) as client:
                client.replicaof("127.0.0.1", 1)
            line.target = new.url.removeprefix("unix://")
            for call in calls:
                await wait_until(partial(is_answered, call), because="it is answered by the new server")
            assert (await store.submit_one(NewTask(task_type="echo"))).status is State.QUEUED


async def test_a_server_that_stays_a_replica_is_not_connected_to_for_each_call(
    lossy: tuple[Wire, Store],
) -> None:
    _, store = lossy
    before = await store.connection.guard(store.connection.shared.call(("CLIENT", "ID")))
    store.connection.shared.reconnect()
    after = await store.connection.guard(store.connection.shared.call(("CLIENT", "ID")))
    assert after != before
    store.connection.shared.reconnect()
    assert await store.connection.guard(store.connection.shared.call(("CLIENT", "ID"))) == after


async def test_a_reply_to_an_abandoned_wait_is_given_to_no_other(live_store: Store) -> None:
    client, keys = live_store.connection.client, live_store.connection.keys
    assert await live_store.workers.wait("a", 0.01) is None  # from now on it has a connection
    waiting = asyncio.create_task(live_store.workers.wait("a", 20))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await client.rpush(keys.key("wake", "a"), "for a")
    assert await live_store.workers.wait("b", 0.2) is None
    several = [live_store.workers.wait(name, 20) for name in "cde"]
    waits = asyncio.gather(*several)
    for name in "cde":
        await client.rpush(keys.key("wake", name), f"for {name}")
    assert await waits == ["for c", "for d", "for e"]
    await client.delete(keys.key("wake", "a"))


async def test_a_blocking_wait_ends_with_its_time_and_not_with_an_error(live_store: Store) -> None:
    await live_store.workers.register("w")
    assert await live_store.workers.wait("w", 0.2) is None


async def test_a_silent_connection_is_closed_and_its_watchers_are_notified(
    live_store: Store, lossy: tuple[Wire, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "PING_EVERY", 0.05)
    monkeypatch.setattr(subscription, "QUIET", 0.3)
    line, store = lossy
    async with asyncio.timeout(20), store.live.watch() as watch:
        assert await anext(watch) is None
        line.silent = True
        await wait_until(lambda: not store.live._listener.subscribed)
        await live_store.submit_one(NewTask(task_type="missed"))
        monkeypatch.setattr(subscription, "QUIET", 20)  # that of the next line is not to end
        line.silent = False
        assert await anext(watch) is None
        later = NewTask(task_type="later")
        await live_store.submit_one(later)
        event = await anext(watch)
        assert event and event.task_id == later.task_id
