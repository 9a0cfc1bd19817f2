"""After a day that saw everything a namespace holds what configuration put there, and what runs out."""

from collections import Counter

import pytest

from fairlead.model.states import TERMINAL, State
from fairlead.settings import (
    LeaseSettings,
    Promotion,
    Rate,
    Scheduling,
    Settings,
    Slots,
    TaskSettings,
)
from fairlead.store.keys import FIXED, PASSING
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.day import USERS, Day
from tests.store.namespace import events, everything, key_names, new, raw


@pytest.fixture
def settings() -> Settings:
    return Settings(
        promotion=Promotion(low_to_medium_seconds=60, medium_to_high_seconds=120, budget=2),
        lease=LeaseSettings(lease_seconds=20, grace_seconds=1),
        scheduling=Scheduling(hold_after_seconds=5),
        limits={
            "a": Slots(limit=1),
            "b": Slots(limit=1),
            "gpu": Slots(limit=4),
            "api": Rate(count=1, period_seconds=5, burst=2),
        },
        tasks={"sum": TaskSettings(limits={"b": 1}), "draw": TaskSettings(max_retries=2)},
    )


@pytest.fixture
async def day(store: Store, clock: Clock) -> Day:
    day = Day(store, clock)
    await day.run()
    await day.go_home()
    return day


async def test_the_day_saw_everything(day: Day) -> None:
    seen = Counter((row["act"], row["to"]) for row in await events(day.store))
    expected = {
        *{("submit", "queued"), ("submit", "delayed"), ("claim", "executing"), ("complete", "completed")},
        *{("fail", "delayed"), ("fail", "failed"), ("fail", "dead_letter"), ("release", "queued")},
        *{("promote", "queued"), ("promote", "failed"), ("cancel", "cancelled"), ("expire", "queued")},
        *{("expire", "delayed"), ("expire", "dead_letter"), ("fail", "queued"), ("extend", "executing")},
    }
    assert set(seen) == expected
    assert day.holds > 0


async def test_the_day_left_output_and_declarations(day: Day) -> None:
    kinds = {name.partition(":")[0] for name in await key_names(day.store)}
    assert {"output", "types"} <= kinds


@pytest.mark.every_server
async def test_only_lasting_keys_are_left(day: Day) -> None:
    fixed, passing = {key.name for key in FIXED}, {key.name for key in PASSING}
    left = {name: runs_out for name, (_, runs_out) in (await everything(day.store)).items()}
    kinds = {name.partition(":")[0] for name in left}
    assert kinds <= fixed | passing - {"lease", "workers", "worker"}
    staying = {
        name for name, runs_out in left.items() if not runs_out and name.partition(":")[0] not in fixed
    }
    assert staying == {"dead", "finished"}


async def test_records_of_ended_tasks_expire_as_retention_says(day: Day, settings: Settings) -> None:
    keep = {True: settings.retention.dead_seconds, False: settings.retention.finished_seconds}
    for name in await key_names(day.store):
        if name.startswith("task:"):
            task = await day.store.get(name.removeprefix("task:"))
            assert task.status in TERMINAL
            seconds = keep[task.status in (State.FAILED, State.DEAD_LETTER)]
            left = await raw(day.store).ttl(day.store.connection.keys.prefix + name)
            assert seconds - 900 <= left <= seconds, task.status  # less a while, on a busy machine


async def test_nothing_is_in_use_and_nothing_is_kept_back(day: Day) -> None:
    limits = await day.store.limits.all()
    assert [(limit.active, limit.waiting, limit.hold, limit.slots) for limit in limits] == [
        (0, 0, None, ())
    ] * 4


async def test_the_books_know_no_more_users_than_there_are(day: Day) -> None:
    content = await everything(day.store)
    books = {name: members for name, (members, _) in content.items() if name.startswith("fin:")}
    assert all(len(members) <= len(USERS) for members in books.values())
    meta = content["meta"][0]
    for name, members in books.items():
        virtual = int(meta.get(f"virtual_{name.removeprefix('fin:')}".encode(), 0))
        assert all(fin > virtual for _, fin in members)


async def test_the_list_of_the_dead_ends_with_their_retention(
    day: Day, clock: Clock, settings: Settings
) -> None:
    clock.pass_seconds(settings.retention.dead_seconds + 1)
    assert await day.store.upkeep.forget() > 0
    assert "dead" not in await key_names(day.store)


async def test_a_second_day_leaves_no_more_than_the_first(day: Day) -> None:
    def fields(content: dict[str, object]) -> set[str]:
        fixed = {key.name for key in FIXED} - {"events", "fin"}
        return {name for name in content if name.partition(":")[0] in fixed}

    before = await everything(day.store)
    await day.run()
    await day.go_home()
    after = await everything(day.store)
    assert fields(after) == fields(before)
    virtual = {f"virtual_{place}".encode() for place in ("0n", "0p", "1n", "1p", "2n")}
    assert after["meta"][0].keys() <= before["meta"][0].keys() | virtual | {b"alarm"}
    for name in ("limit:a", "limit:b", "limit:gpu"):
        assert after[name][0].keys() == before[name][0].keys()


async def test_workers_that_never_return_are_forgotten(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    clock.pass_seconds(3601)
    assert [lost.worker_id for lost in await store.upkeep.bury()] == ["w"]
    assert "workers" not in await key_names(store)
    left = await raw(store).pttl(store.connection.keys.key("worker", "w"))
    assert 0 < left <= 3_600_000 + store.settings.worker_ttl_ms


@pytest.mark.parametrize("returns", [False, True])
async def test_workers_whose_records_expired_unnoticed_are_no_longer_counted(
    store: Store, clock: Clock, returns: bool
) -> None:
    """A power cut for hours: more of them than one act names."""
    workers = [f"w{i}" for i in range(450)]
    for worker in workers:
        await store.workers.register(worker)
        await store.claim(worker, idle=True)
    clock.pass_seconds(7_200)
    await raw(store).delete(*[store.connection.keys.key("worker", worker) for worker in workers])
    if returns:
        await store.workers.register("w7")
        workers.remove("w7")
    lost = [one.worker_id for _ in range(3) for one in await store.upkeep.bury()]
    assert sorted(lost) == sorted(workers)
    left = {name for name in await key_names(store) if name.startswith(("worker", "listed", "idle"))}
    assert left == ({"worker:w7", "workers", "listed"} if returns else set())


async def test_a_worker_that_only_claims_is_remembered_as_long_as_one_that_beats(store: Store) -> None:
    await store.workers.register("w")
    key = store.connection.keys.key("worker", "w")
    await raw(store).pexpire(key, 60_000)  # nearly an hour later
    await store.claim("w")
    assert await raw(store).pttl(key) > 3_000_000


async def test_a_cancelled_run_whose_record_has_expired_blocks_nothing(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(new(limits={"gpu": 1}))
    (task,) = (await store.claim("w")).tasks
    await store.cancel(task.task_id)
    # nobody looks for two days: the record runs out before anything ends the lease
    await raw(store).delete(store.connection.keys.key("task", task.task_id))
    clock.pass_seconds(2 * 86_400)
    await store.workers.register("w")
    await store.claim("w")
    assert (await store.limits.get("gpu")).active == 0
