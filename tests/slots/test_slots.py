"""Slots on an object store: never more holders than the limit, whoever dies, and fences that only grow."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.slots import Slot, SlotStore
from fairlead.slots.objects import objects_at
from tests.slots.conftest import Later

NewStore = Callable[[], SlotStore]


async def taken(slots: SlotStore, group: str = "gpu", limit: int = 2, holder: str = "me") -> Slot:
    slot = await slots.try_acquire(group, limit, holder)
    assert slot
    return slot


async def test_as_many_hold_a_slot_as_the_limit_says(new_store: NewStore) -> None:
    answers = await asyncio.gather(*(new_store().try_acquire("gpu", 3, f"w{n}") for n in range(8)))
    held = [slot for slot in answers if slot]
    assert len({slot.slot_id for slot in held}) == len(held) <= 3
    slots = new_store()
    while slot := await slots.try_acquire("gpu", 3, "late"):  # a conflict is not waited for
        held.append(slot)
    assert sorted(slot.slot_id for slot in held) == [0, 1, 2]
    status = await slots.status("gpu")
    assert (status.limit, status.active, [slot.state for slot in status.slots]) == (3, 3, ["held"] * 3)


async def test_a_released_slot_is_free_and_its_next_fence_is_greater(slots: SlotStore) -> None:
    first = await taken(slots, limit=1)
    assert await slots.try_acquire("gpu", 1, "other") is None
    await slots.release(first)
    assert [slot.state for slot in (await slots.status("gpu")).slots] == ["free"]
    second = await taken(slots, limit=1, holder="other")
    assert (second.slot_id, second.fence) == (first.slot_id, first.fence + 1)
    with pytest.raises(errors.Fenced):
        await slots.release(first)
    assert (await slots.status("gpu")).active == 1


async def test_the_slot_of_a_dead_holder_is_taken_over_after_the_skew(
    slots: SlotStore, new_store: NewStore, later: Later
) -> None:
    dead = await slots.try_acquire("gpu", 1, "dead", 30, task_id="t1")
    assert dead
    later.ms = 34_000  # the lease is over, but perhaps not by the holder's clock
    assert await new_store().try_acquire("gpu", 1, "next") is None
    later.ms = 36_000
    heir = await taken(new_store(), limit=1, holder="next")
    assert heir.fence > dead.fence
    for act in (slots.extend(dead, 30), slots.renew(dead, 30_000)):
        with pytest.raises(errors.Fenced):
            await act


async def test_an_extended_lease_is_kept(slots: SlotStore, later: Later) -> None:
    slot = await taken(slots, limit=1)
    later.ms = 20_000
    extended = await slots.extend(slot, 30)
    assert extended.expires_at > slot.expires_at
    later.ms = 50_000
    assert await slots.try_acquire("gpu", 1, "other") is None
    await slots.release(extended)


async def test_the_first_limit_stands_until_it_is_set(new_store: NewStore) -> None:
    first, other = new_store(), new_store()
    kept = [await taken(first, limit=2), await taken(other, limit=50)]
    assert await other.try_acquire("gpu", 50, "third") is None
    await other.set_limit("gpu", 3)
    kept.append(await taken(other, limit=50))
    await other.set_limit("gpu", 1)
    assert (await other.status("gpu")).active == 3  # nobody is interrupted
    for slot in kept:
        await other.release(slot)
    assert (await taken(other, limit=50)).slot_id == 0
    assert await other.try_acquire("gpu", 50, "second") is None


async def test_expired_slots_are_cleaned_up(slots: SlotStore, later: Later) -> None:
    await taken(slots)
    later.ms = 20_000
    await taken(slots)
    later.ms = 36_000
    assert sorted(slot.state for slot in (await slots.status("gpu")).slots) == ["expired", "held"]
    assert await slots.cleanup_expired("gpu") == 1
    assert await slots.cleanup_expired("gpu") == 0
    assert sorted(slot.state for slot in (await slots.status("gpu")).slots) == ["free", "held"]


async def test_a_stuck_or_damaged_slot_is_released_by_force(slots: SlotStore, url: str) -> None:
    stuck = await taken(slots, limit=1)
    await slots.force_release("gpu", 0)
    with pytest.raises(errors.Fenced):
        await slots.extend(stuck, 30)
    with pytest.raises(errors.Fenced, match="Nobody holds slot 0"):
        await slots.force_release("gpu", 0)
    objects = objects_at(url)
    name = "concurrency/gpu/slots/0"
    found = await objects.read(name)
    assert found and await objects.write(name, b"garbage", found.version)
    assert await slots.try_acquire("gpu", 1, "other") is None
    assert [slot.state for slot in (await slots.status("gpu")).slots] == ["damaged"]
    await slots.force_release("gpu", 0)
    assert (await taken(slots, limit=1)).fence > stuck.fence


async def test_groups_are_listed(slots: SlotStore) -> None:
    assert await slots.groups() == []
    await taken(slots, "gpu")
    await slots.set_limit("api:eu.1", 5)
    assert await slots.groups() == ["api:eu.1", "gpu"]
    with pytest.raises(errors.UnknownLimit):
        await slots.status("cpu")


async def test_a_block_holds_a_slot_and_others_wait_for_it(new_store: NewStore) -> None:
    slots, order = new_store(), []

    async def wait() -> None:
        async with new_store().acquire("gpu", 1, wait=30) as slot:
            order.append(f"fence {slot.fence}")

    async with slots.acquire("gpu", 1, holder="first"):
        with pytest.raises(errors.LimitFull):
            async with slots.acquire("gpu", 1):
                pass
        waiting = asyncio.create_task(wait())
        with pytest.raises(errors.LimitFull):
            async with slots.acquire("gpu", 1, wait=0.2):
                pass
        order.append("first")
    await waiting
    assert order == ["first", "fence 2"]
    assert (await slots.status("gpu")).active == 0


async def test_a_block_whose_slot_is_taken_away_is_stopped(slots: SlotStore) -> None:
    with pytest.raises(errors.LeaseLost):
        async with slots.acquire("gpu", 1, lease_seconds=0.3) as slot:
            await slots.force_release("gpu", slot.slot_id)
            await asyncio.sleep(30)


@pytest.mark.parametrize("group", ["", ".probe", "..", "a/b", "x" * 201])
async def test_a_group_that_cannot_be_a_name_is_refused(group: str, tmp_path: Path) -> None:
    slots = SlotStore(f"file://{tmp_path}")
    for call in (slots.try_acquire(group, 1, "w"), slots.status(group), slots.set_limit(group, 1)):
        with pytest.raises(errors.InvalidInput, match="group"):
            await call
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("limit", [0, -1, 1001, 1.5, True])
async def test_a_limit_that_makes_no_sense_is_refused(limit: int, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="limit"):
        await SlotStore(f"file://{tmp_path}").try_acquire("gpu", limit, "w")


@pytest.mark.parametrize("url", ["slots", "/var/slots", "file://", "file://host/slots", "nope://x"])
def test_an_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises((errors.InvalidInput, errors.InvalidSettings)):
        SlotStore(url)


async def test_a_damaged_limit_says_how_to_mend_it(slots: SlotStore, url: str) -> None:
    await objects_at(url).write("concurrency/gpu/limit", b"many", None)
    with pytest.raises(errors.InvalidInput, match="fairlead concurrency set gpu --limit N"):
        await slots.try_acquire("gpu", 1, "w")
    await slots.set_limit("gpu", 1)
    await taken(slots)


async def test_slots_in_memory_are_for_tests() -> None:
    slots = SlotStore("memory://")
    await slots.release(await taken(slots, limit=1))
    assert (await taken(slots, limit=1)).fence == 2
