"""Task types and limits as code declares them, over processes and over restarts."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import pytest

from fairlead import Fairlead, errors
from fairlead.model.states import State
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store


async def test_a_task_of_a_type_that_no_worker_knows_any_more_waits_for_one_that_does(
    new_app: Callable[[], Fairlead],
) -> None:
    old, new, restored = new_app(), new_app(), new_app()

    async def draw() -> str:
        return "drawn"

    async def paint() -> str:
        return "painted"

    for app, functions in ((old, [draw, paint]), (new, [paint]), (restored, [draw])):
        for function in functions:
            app.task(function)
    async with old:
        task = await old.submit("draw")
    async with new, new.worker():
        assert await (await new.submit("paint")).result(timeout=30) == "painted"
        waiting = await new.get(task.task_id)
        assert waiting.status is State.QUEUED
        assert (await waiting.explain()).sentence == (
            "No live worker has the capabilities and task types it needs."
        )
    async with restored, restored.worker():
        assert await (await restored.get(task.task_id)).result(timeout=30) == "drawn"


async def test_who_does_not_know_the_function_submits_it_with_all_its_type_has(
    new_app: Callable[[], Fairlead],
) -> None:
    knows, submits = new_app(), new_app()
    knows.limit("gpu", 2)

    @knows.task(
        "draw",
        limits={"gpu": 2},
        max_concurrent=3,
        timeout=7,
        max_retries=1,
        required_capabilities=["cuda"],
    )
    async def draw() -> None: ...

    async with knows, submits:
        task = await (await submits.submit("draw", limits={"gpu": 1})).get()
    assert (task.limits, task.required_capabilities) == ({"gpu": 2, "draw": 1}, ("cuda",))
    assert (task.timeout_ms, task.max_retries) == (7000, 1)


async def test_what_a_submit_says_itself_counts_for_it(new_app: Callable[[], Fairlead]) -> None:
    fl = new_app()

    @fl.task(timeout=7, max_retries=1)
    async def draw() -> None: ...

    async with fl:
        task = await (await draw.submit(timeout_seconds=9, max_retries=4)).get()
    assert (task.timeout_ms, task.max_retries) == (9000, 4)


async def test_a_worker_runs_only_what_it_is_capable_of(new_app: Callable[[], Fairlead]) -> None:
    fl = new_app()

    @fl.task(required_capabilities=["cuda"])
    async def draw() -> str:
        return "drawn"

    async with fl:
        task = await draw.submit()
        async with fl.worker(name="plain"), fl.worker(name="capable", capabilities=("cuda",)):
            assert await task.result(timeout=30) == "drawn"
        ended = await task.get()
        assert ended.assigned_worker_id and ended.assigned_worker_id.startswith("capable-")


async def test_a_limit_is_set_by_the_first_who_declares_it(fl: Fairlead, live_store: Store) -> None:
    fl.limit("gpu", 1)
    fl.limit("api", rate="60/min", burst=5)
    async with fl:
        gpu, api = await live_store.limits.get("gpu"), await live_store.limits.get("api")
    assert (gpu.kind, gpu.limit) == ("slots", 1)
    assert (api.kind, api.limit, api.interval_us) == ("rate", 5, 1_000_000)


async def test_of_two_declarations_in_one_program_the_later_counts(fl: Fairlead, live_store: Store) -> None:
    fl.limit("gpu", 1)
    fl.limit("gpu", 4)
    async with fl:
        assert (await live_store.limits.get("gpu")).limit == 4


async def test_an_operators_change_stands_until_the_declaration_changes(
    new_app: Callable[[], Fairlead], live_store: Store
) -> None:
    async def start_with(slots: int) -> int:
        app = new_app()
        app.limit("gpu", slots)
        async with app:
            return (await live_store.limits.get("gpu")).limit

    assert await start_with(2) == 2
    await live_store.limits.set("gpu", Slots(limit=7))
    assert await start_with(2) == 7, "the program was only restarted"
    assert await start_with(3) == 3, "the program says something new"
    await live_store.limits.set("gpu", Rate(count=1, period_seconds=1, burst=1))
    assert await start_with(3) == 1


@pytest.mark.parametrize(
    ("declare", "complaint"),
    [
        (lambda fl: fl.limit("gpu"), "gpu: give a number of slots, or rate="),
        (lambda fl: fl.limit("gpu", 1, rate="1/s"), "gpu: give a number of slots, or rate="),
        (lambda fl: fl.limit("gpu", rate="often"), "rate: "),
        (lambda fl: fl.limit("two words", 1), "name: use 1 to 200 of"),
    ],
)
def test_a_limit_that_is_none_is_refused_at_once(declare: Callable[[Fairlead], None], complaint: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        declare(Fairlead())
    assert complaint in str(refusal.value)


async def test_what_the_store_refuses_is_said_when_the_app_connects(new_app: Callable[[], Fairlead]) -> None:
    unknown_limit, negative, bad_timeout = new_app(), new_app(), new_app()
    unknown_limit.task("draw", limits={"gpu": 1})(asyncio.sleep)
    with pytest.raises(errors.InvalidInput, match=r"tasks\.draw\.limits\.gpu: there is no such limit"):
        await unknown_limit.__aenter__()
    negative.limit("gpu", -1)
    with pytest.raises(errors.InvalidInput, match=r"limits\.gpu: is not a whole number"):
        await negative.__aenter__()
    bad_timeout.task("draw", timeout=-3)(asyncio.sleep)
    with pytest.raises(
        errors.InvalidInput, match=r"tasks\.draw\.timeout_seconds: is not a number of seconds"
    ):
        await bad_timeout.__aenter__()


def test_a_cron_is_given_what_its_function_needs() -> None:
    fl = Fairlead()

    @fl.cron("30 2 * * *", parameters={"city": "Berlin"}, priority="low", timeout=5)
    async def report(city: str, tick: datetime) -> None: ...

    (cron,) = fl.crons
    task = cron.new_task(0)
    assert (task.task_type, task.priority) == ("report", "low")
    assert task.parameters == {"city": "Berlin", "tick": "1970-01-01T00:00:00.000Z"}
    assert report.handler.settings.timeout_seconds == 5


def test_a_cron_that_could_never_run_is_refused_at_once() -> None:
    fl = Fairlead()

    async def report(city: str) -> None: ...

    with pytest.raises(errors.InvalidInput, match="missing required field `city`"):
        fl.cron("30 2 * * *")(report)
    decorated = fl.task("weather")(report)
    with pytest.raises(errors.InvalidInput, match="give timeout to `@fl"):
        fl.cron("30 2 * * *", parameters={"city": "Berlin"}, timeout=5)(decorated)
    with pytest.raises(errors.InvalidInput, match="cannot be the same for every tick"):
        fl.cron("30 2 * * *", parameters={"city": "Berlin"}, idempotency_key="k")(decorated)
    assert fl.crons == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"capacity": 2, "reserve": 2}, "reserve: is not a whole number from 0 to less than the capacity"),
        ({"capacity": 200_000}, "capacity: is not a whole number from 1 to 100000"),
        ({"capabilities": ("two words",)}, "capabilities: use 1 to 200 of"),
    ],
)
async def test_a_worker_that_cannot_work_as_it_is_says_why(
    fl: Fairlead, options: dict[str, object], complaint: str
) -> None:
    fl.task("nap")(asyncio.sleep)
    async with fl:
        with pytest.raises(errors.InvalidInput, match=complaint):
            async with fl.worker(**options):
                pass


async def test_a_worker_without_tasks_has_nothing_to_run(fl: Fairlead) -> None:
    async with fl:
        with pytest.raises(errors.InvalidInput, match=r"decorate a function with @fl\.task"):
            async with fl.worker():
                pass
