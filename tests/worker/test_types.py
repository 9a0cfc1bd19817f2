"""Task types and limits as code declares them, over processes and over restarts."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead, errors
from fairlead.model.states import State
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.servers import Server
from tests.waiting import wait_until


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
        assert (await waiting.explain()).sentence == "No live worker serves the task type 'draw'."
    async with restored, restored.worker():
        assert await (await restored.get(task.task_id)).result(timeout=30) == "drawn"


async def test_a_client_without_the_function_submits_it_with_everything_its_type_declares(
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


async def test_the_options_of_a_submit_override_those_of_its_type(new_app: Callable[[], Fairlead]) -> None:
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


async def test_a_limit_is_set_by_its_first_declaration(fl: Fairlead, live_store: Store) -> None:
    fl.limit("gpu", 1)
    fl.limit("api", rate="60/min", burst=5)
    async with fl:
        gpu, api = await live_store.limits.get("gpu"), await live_store.limits.get("api")
    assert (gpu.kind, gpu.limit) == ("slots", 1)
    assert (api.kind, api.limit, api.interval_us) == ("rate", 5, 1_000_000)


async def test_the_later_of_two_declarations_in_one_program_counts(fl: Fairlead, live_store: Store) -> None:
    fl.limit("gpu", 1)
    fl.limit("gpu", 4)
    async with fl:
        assert (await live_store.limits.get("gpu")).limit == 4


async def test_an_operators_change_is_kept_until_the_declaration_changes(
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
    assert await start_with(3) == 3, "the program has a new declaration"
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
def test_an_invalid_limit_is_refused_at_once(declare: Callable[[Fairlead], None], complaint: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        declare(Fairlead())
    assert complaint in str(refusal.value)


async def test_a_refusal_of_the_store_is_raised_when_the_app_connects(
    new_app: Callable[[], Fairlead],
) -> None:
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
        with_key: Any = {"parameters": {"city": "Berlin"}, "idempotency_key": "k"}
        fl.cron("30 2 * * *", **with_key)(decorated)
    assert fl.crons == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"capacity": 2, "reserve": 3}, "reserve: is not a whole number from 0 to 2"),
        ({"capacity": 200_000}, "capacity: is not a whole number from 1 to 100000"),
        ({"capabilities": ("two words",)}, "capabilities: use 1 to 200 of"),
    ],
)
async def test_a_misconfigured_worker_says_why(fl: Fairlead, options: dict[str, Any], complaint: str) -> None:
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


async def test_code_and_file_may_name_limits_of_each_other(
    server: Server, live_store: Store, tmp_path: Path
) -> None:
    config = tmp_path / "both.toml"
    config.write_text("[limits]\ngpu = 2\n[tasks.print]\nlimits = { printer = 1 }\n")
    app = Fairlead(server.url, namespace=f"{live_store.connection.keys.namespace}-both", config=config)
    app.limit("printer", 1)

    @app.task(limits={"gpu": 1})
    async def draw() -> str:
        return "drawn"

    async with app, app.worker():
        assert await (await draw.submit()).result(timeout=30) == "drawn"
        limits = {limit.name: limit.limit for limit in await app.store.limits.all()}
        assert limits == {"gpu": 2, "printer": 1}
        task = await app.submit("print", delay_seconds=60)
        assert (await task.get()).limits == {"printer": 1}
        await task.cancel()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apps confirm what they declare at once and again and again, not every hour."""
    monkeypatch.setattr("fairlead.client.opening.CONFIRM_SECONDS", 0.02)


async def declared_at(store: Store, name: str) -> float | None:
    key = store.connection.keys.key("declarations")
    score: float | None = await store.connection.client.zscore(key, name)
    return score


@pytest.mark.usefixtures("often")
async def test_a_running_app_confirms_what_it_declares(fl: Fairlead, live_store: Store) -> None:
    fl.task("draw")(lambda: None)
    fl.pipeline("picture", ["draw"])
    async with fl:
        before = [await declared_at(live_store, name) for name in ("types:draw", "pipelines:picture")]

        async def confirmed() -> bool:
            now = [await declared_at(live_store, name) for name in ("types:draw", "pipelines:picture")]
            return all(a is not None and b is not None and a < b for a, b in zip(before, now, strict=True))

        await wait_until(confirmed)


@pytest.mark.usefixtures("often")
async def test_a_running_app_declares_again_what_was_forgotten(fl: Fairlead, live_store: Store) -> None:
    fl.limit("gpu", 1)
    fl.task("draw", limits={"gpu": 1})(lambda: None)
    async with fl:
        await live_store.connection.client.delete(
            *map(live_store.connection.keys.key, ("types", "declarations"))
        )

        async def restored() -> bool:
            return "draw" in await live_store.task_types()

        await wait_until(restored)
        assert (await live_store.get((await fl.submit("draw")).task_id)).limits == {"gpu": 1}
