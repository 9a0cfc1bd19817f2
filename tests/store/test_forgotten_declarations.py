"""What code declares is forgotten when no process has declared or confirmed it for a day."""

from collections.abc import Callable

import pytest

from fairlead.errors import InvalidInput
from fairlead.settings import Settings, Slots, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new, raw, reopened

HOURLY = 3_600
DRAW = TaskSettings(limits={"gpu": 1})
STAGES = (("draw",),)


@pytest.fixture
async def store(store: Store, clock: Clock) -> Store:
    """Its upkeep has run for a day."""
    await store.limits.set("gpu", Slots(limit=1))
    await hours_pass(store, clock, 25)
    return store


async def hours_pass(store: Store, clock: Clock, hours: int) -> None:
    for _ in range(hours):
        clock.pass_seconds(HOURLY)
        await store.upkeep.bury()


async def declared(store: Store) -> tuple[list[str], list[str]]:
    return await store.jobs.pipelines.task_types(), await store.jobs.pipelines.names()


async def test_a_type_and_a_pipeline_go_after_a_day(store: Store, clock: Clock) -> None:
    await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
    await hours_pass(store, clock, 23)
    assert await declared(store) == (["draw"], ["picture"])
    await hours_pass(store, clock, 1)
    assert await declared(store) == ([], [])
    assert await raw(store).exists(store.connection.keys.key("declarations")) == 0
    assert (await store.get((await store.submit_one(new("draw"))).task_id)).limits == {}


async def test_what_a_process_confirms_stays(store: Store, clock: Clock) -> None:
    await store.declare("code", {"draw": DRAW, "old": DRAW}, {}, {"picture": STAGES, "old": STAGES})
    for _ in range(4):
        await hours_pass(store, clock, 12)
        assert await store.confirm(["draw"], ["picture"])
    assert await declared(store) == (["draw"], ["picture"])
    assert not await store.confirm(["draw", "old"], [])
    assert not await store.confirm([], ["old"])
    assert await declared(store) == (["draw"], ["picture"]), "a name alone declares nothing"


async def test_what_is_declared_again_stays(store: Store, clock: Clock) -> None:
    for _ in range(4):
        await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
        await hours_pass(store, clock, 23)
    assert await declared(store) == (["draw"], ["picture"])


async def test_what_a_file_declares_stays(
    store: Store, clock: Clock, open_store: Callable[..., Store]
) -> None:
    settings = Settings(tasks={"draw": TaskSettings()}, pipelines={"picture": STAGES})
    await reopened(store, open_store, settings)
    await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
    await hours_pass(store, clock, 24)
    assert await declared(store) == (["draw"], ["picture"])
    assert (await store.get((await store.submit_one(new("draw"))).task_id)).limits == {}, "of the code"


async def test_a_type_with_waiting_tasks_stays(store: Store, clock: Clock) -> None:
    await store.declare("code", {"draw": DRAW, "old": DRAW}, {})
    task = (await store.submit_one(new("draw", required_capabilities=("tpu",)))).task_id
    await hours_pass(store, clock, 48)
    assert (await declared(store))[0] == ["draw"]
    await store.cancel(task)
    await hours_pass(store, clock, 24)
    assert (await declared(store))[0] == []


async def test_a_type_that_a_live_worker_names_stays(store: Store, clock: Clock) -> None:
    """It may not be a worker that confirms."""
    await store.declare("code", {"draw": DRAW, "old": DRAW}, {})
    for _ in range(48):
        clock.pass_seconds(HOURLY)
        await store.workers.register("named", task_types=["draw"])
        await store.workers.register("any")
        await store.upkeep.bury()
    assert (await declared(store))[0] == ["draw"]
    await hours_pass(store, clock, 26)
    assert (await declared(store))[0] == []


async def test_a_pause_is_kept(store: Store, clock: Clock) -> None:
    await store.declare("code", {"draw": DRAW}, {})
    await store.pause_type("draw")
    since = clock.now
    await hours_pass(store, clock, 24)
    assert (await declared(store))[0] == []
    assert await store.task_types() == {"draw": since}
    await store.workers.register("w")
    await store.submit_one(new("draw"))
    assert (await store.claim("w")).tasks == []


async def test_its_limit_can_be_deleted_then_and_is_declared_with_it_again(
    store: Store, clock: Clock
) -> None:
    await store.declare("code", {"draw": DRAW}, {"gpu": Slots(limit=1)})
    await hours_pass(store, clock, 24)
    await store.limits.delete("gpu")
    with pytest.raises(InvalidInput, match="there is no such limit"):
        await store.declare("code", {"draw": DRAW}, {})
    await store.declare("code", {"draw": DRAW}, {"gpu": Slots(limit=1)})


async def test_after_a_pause_of_the_upkeep_processes_have_a_day_to_confirm(
    store: Store, clock: Clock
) -> None:
    """A machine that was asleep, or switched off: its processes have confirmed nothing either."""
    await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
    clock.pass_seconds(3 * 86_400)
    await hours_pass(store, clock, 20)
    assert await declared(store) == (["draw"], ["picture"])
    await hours_pass(store, clock, 5)
    assert await declared(store) == ([], [])


async def test_what_an_older_version_declared_is_forgotten_as_well(
    store: Store, clock: Clock, open_store: Callable[..., Store]
) -> None:
    await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
    await raw(store).delete(store.connection.keys.key("declarations"))
    await hours_pass(store, clock, 48)
    assert await declared(store) == (["draw"], ["picture"])
    await reopened(store, open_store, store.settings)
    await hours_pass(store, clock, 24)
    assert await declared(store) == ([], [])


async def test_a_thousand_go_a_few_at_a_time(store: Store, clock: Clock) -> None:
    await store.declare("code", {f"t{n}": TaskSettings() for n in range(1_000)}, {})
    await hours_pass(store, clock, 23)
    counts: list[int] = []
    while not counts or counts[-1]:
        before = (await declared(store))[0]
        await hours_pass(store, clock, 1)
        counts.append(len((await declared(store))[0]))
        assert len(before) - counts[-1] <= 64


async def test_tasks_and_jobs_of_what_is_forgotten_run_on(store: Store, clock: Clock) -> None:
    await store.declare("code", {"draw": DRAW}, {})
    await store.submit_one(new("draw", delay_seconds=30 * HOURLY))
    await hours_pass(store, clock, 30)
    assert (await declared(store))[0] == []
    await store.promote()
    await store.workers.register("w")
    assert (await claim_one(store)).limits == {"gpu": 1}


async def test_a_confirmation_changes_nothing_else(store: Store) -> None:
    await store.declare("code", {"draw": DRAW}, {}, {"picture": STAGES})
    before = await everything(store)
    assert await store.confirm(["draw"], ["picture"])
    assert await everything(store) == before
