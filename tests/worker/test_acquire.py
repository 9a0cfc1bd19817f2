"""A limit without a task: held while a block runs, and not a moment longer than it is ours."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import Fairlead, errors
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.faults.wire import wire
from tests.servers import Server
from tests.waiting import wait_until


@pytest.fixture
def fl(new_app: Callable[[], Fairlead]) -> Fairlead:
    fl = new_app()
    fl.limit("gpu", 2)
    return fl


async def used(store: Store) -> int:
    return (await store.limits.get("gpu")).active


async def test_units_are_held_while_the_block_runs(fl: Fairlead, live_store: Store) -> None:
    async with fl:
        async with fl.acquire("gpu", units=2, holder="notebook") as lease:
            limit = await live_store.limits.get("gpu")
            assert [(slot.lease_id, slot.units, slot.holder) for slot in limit.slots] == [
                (lease.lease_id, 2, "notebook")
            ]
        assert await used(live_store) == 0


async def test_an_error_of_the_block_passes_and_frees_the_units(fl: Fairlead, live_store: Store) -> None:
    async with fl:
        with pytest.raises(ZeroDivisionError):
            async with fl.acquire("gpu"):
                _ = 1 / 0
        assert await used(live_store) == 0


async def test_a_full_limit_is_reported_at_once_or_after_the_wait(fl: Fairlead) -> None:
    async with fl, fl.acquire("gpu", units=2):
        with pytest.raises(errors.LimitFull):
            async with fl.acquire("gpu"):
                pass
        with pytest.raises(errors.LimitFull):
            async with fl.acquire("gpu", wait=0.05):
                pass


async def test_a_waiting_acquire_gets_the_units_when_they_are_free(fl: Fairlead) -> None:
    order: list[str] = []

    async def hold(name: str, held: asyncio.Event, released: asyncio.Event) -> None:
        async with fl.acquire("gpu", units=2, wait=30):
            order.append(name)
            held.set()
            await released.wait()
        order.append(f"{name} done")

    first, second, released = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with fl, asyncio.TaskGroup() as group:
        group.create_task(hold("ann", first, released))
        await first.wait()
        group.create_task(hold("bob", second, released))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.wait(), 0.1)
        released.set()
    assert order == ["ann", "ann done", "bob", "bob done"]


async def test_a_lease_is_renewed_for_as_long_as_the_block_runs(fl: Fairlead, live_store: Store) -> None:
    async with fl, fl.acquire("gpu", lease_seconds=5) as lease:

        async def outlived() -> bool:
            (slot,) = (await live_store.limits.get("gpu")).slots
            return (slot.expires_at or 0) > lease.expires_at + 5000

        await wait_until(outlived)


async def test_a_block_whose_lease_was_released_by_force_is_stopped(fl: Fairlead, live_store: Store) -> None:
    async with fl:
        with pytest.raises(errors.LeaseLost):
            async with fl.acquire("gpu", lease_seconds=3) as lease:
                await live_store.limits.force_release("gpu", lease.lease_id)
                await asyncio.Event().wait()
        this = asyncio.current_task()
        assert this and this.cancelling() == 0, "the holder continues"
        async with fl.acquire("gpu", units=2):
            assert await used(live_store) == 2


async def test_a_block_that_swallows_its_end_raises_it_afterwards(fl: Fairlead, live_store: Store) -> None:
    async with fl:
        with pytest.raises(errors.LeaseLost):
            async with fl.acquire("gpu", lease_seconds=3) as lease:
                await live_store.limits.force_release("gpu", lease.lease_id)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.Event().wait()
        this = asyncio.current_task()
        assert this and this.cancelling() == 0


async def test_a_cancelled_block_frees_the_units(fl: Fairlead, live_store: Store) -> None:
    async def hold() -> None:
        async with fl.acquire("gpu"):
            await asyncio.Event().wait()

    async with fl:
        holding = asyncio.create_task(hold())
        await wait_until(lambda: used(live_store))
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        assert await used(live_store) == 0


async def test_requested_units_are_freed_when_the_acquire_is_cancelled_before_the_answer(
    fl: Fairlead, live_store: Store
) -> None:
    async def hold() -> None:
        async with fl.acquire("gpu"):
            await asyncio.Event().wait()

    async with fl:
        async with fl.acquire("gpu"):
            pass  # it is connected
        for steps in range(12):  # of the loop: before the request, during it, and after the answer
            holding = asyncio.create_task(hold())
            for _ in range(steps):
                await asyncio.sleep(0)
            holding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await holding
            assert await used(live_store) == 0


@pytest.mark.parametrize("seconds", [6, 6.3])  # with the latter an attempt fails just before it is too late
async def test_a_block_is_stopped_before_others_may_have_its_units_although_the_store_is_silent(
    live_store: Store, server: Server, tmp_path: Path, seconds: float
) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    fl = Fairlead(f"unix://{tmp_path}/wire", namespace=live_store.connection.keys.namespace)
    async with wire(server.url, tmp_path) as (line, _), fl:
        with pytest.raises(errors.LeaseLost):
            async with fl.acquire("gpu", lease_seconds=seconds):
                line.silent = True
                try:
                    await asyncio.Event().wait()
                finally:
                    assert await used(live_store) == 1
        line.silent = False
    await wait_until(lambda: live_store.expire())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limit": "licence"}, errors.UnknownLimit),
        ({"units": 3}, errors.InvalidInput),
        ({"units": 0}, errors.InvalidInput),
        ({"wait": float("nan")}, errors.InvalidInput),
        ({"lease_seconds": 0}, errors.InvalidInput),
        ({"lease_seconds": float("inf")}, errors.InvalidInput),
    ],
)
async def test_units_that_can_never_be_held_are_refused(
    fl: Fairlead, options: dict[str, object], error: type[errors.FairleadError]
) -> None:
    async with fl:
        with pytest.raises(error):
            async with fl.acquire(**{"limit": "gpu", **options}):  # type: ignore[arg-type]
                pass
