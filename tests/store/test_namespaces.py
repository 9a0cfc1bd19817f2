"""A namespace is isolated: on a shared server, across versions, flushes and the loss of its data."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Promotion, Settings, Slots
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.servers import Server
from tests.store.namespace import claim_one, everything, key_names, new, raw, run_all, wipe


async def reopened(store: Store, open_store: Callable[..., Store], settings: Settings) -> Store:
    """The same namespace by a process with other settings."""
    other = open_store(namespace=store.connection.keys.namespace, clock=store.clock, settings=settings)
    await other.open()
    return other


# Two on one server


async def do_some_of_everything(store: Store, task_id: str) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=2)
    await store.submit(new(task_id=task_id, limits={"gpu": 1}, idempotency_key="k"), new(delay_seconds=5))
    task = await claim_one(store)
    lost = new(limits={"gpu": 1})
    await store.submit_one(lost)
    await store.complete("w", Completed(task.task_id, task.fence))
    await store.cancel(lost.task_id)
    await store.limits.acquire("gpu", lease_id="l")
    await store.claim("w", idle=True)


@pytest.mark.every_server
async def test_two_namespaces_on_one_server_never_touch_each_other(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    one, two = open_store(clock=clock), open_store(clock=clock)
    task = new()
    for mine, others in ((one, two), (two, one)):
        before = await everything(others)
        await mine.open()
        await do_some_of_everything(mine, task.task_id)
        assert await everything(others) == before
    seen = [await store.get(task.task_id) for store in (one, two)]
    assert seen[0] == seen[1]


@pytest.mark.every_server
async def test_a_name_that_begins_like_another_is_another(
    open_store: Callable[..., Store], store: Store, clock: Clock
) -> None:
    longer = open_store(namespace=store.connection.keys.namespace + ".more", clock=clock)
    await longer.open()
    before = await everything(longer)
    await store.submit_one(new())
    await wipe(store)
    assert await everything(longer) == before


class TestOnACluster:
    @pytest.fixture
    def server(self, start_server: Callable[[str], Server]) -> Server:
        return start_server("cluster")

    async def test_all_keys_of_a_namespace_live_on_one_shard(self, store: Store) -> None:
        await do_some_of_everything(store, new().task_id)
        keys = [store.connection.keys.prefix + name for name in await key_names(store)]
        assert len({await raw(store).execute_command("CLUSTER", "KEYSLOT", key) for key in keys}) == 1


# Schema and policy


@pytest.mark.every_server
async def test_opening_writes_the_schema_and_may_be_repeated(store: Store) -> None:
    await store.submit_one(new())
    before = await everything(store)
    assert before["meta"][0][b"schema"] == str(SCHEMA).encode()
    await store.open()
    assert await everything(store) == before | {"meta": (before["meta"][0] | {b"alarm": b"0"}, False)}


@pytest.mark.every_server
async def test_a_namespace_of_a_newer_fairlead_is_refused_and_left_alone(store: Store) -> None:
    await store.submit_one(new())
    meta = store.connection.keys.meta
    await raw(store).hset(meta, "schema", SCHEMA + 1)
    before = await everything(store)
    with pytest.raises(errors.SchemaTooNew, match=f"schema {SCHEMA + 1}.*knows {SCHEMA}.*upgrade"):
        await store.open()
    assert await everything(store) == before
    await raw(store).hset(meta, "schema", SCHEMA)


@pytest.mark.every_server
async def test_once_a_newer_fairlead_has_migrated_it_no_act_of_this_one_changes_it(store: Store) -> None:
    await store.submit_one(new())
    meta = store.connection.keys.meta
    await raw(store).hset(meta, "schema", SCHEMA + 1)
    before, refused = await everything(store), []
    for name, act in every_act(store).items():
        try:
            await act()
        except errors.SchemaTooNew as problem:
            assert "upgrade it" in problem.message
            refused.append(name)
    assert refused == list(every_act(store))
    with pytest.raises(errors.SchemaTooNew):
        await store.check_open()
    assert await everything(store) == before
    await raw(store).hset(meta, "schema", SCHEMA)


async def test_new_thresholds_apply_to_tasks_that_wait_already(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    waiting = await store.submit_one(new(priority="low"))
    clock.pass_seconds(10)
    settings = Settings(promotion=Promotion(low_to_medium_seconds=8, medium_to_high_seconds=100))
    other = await reopened(store, open_store, settings)
    await other.workers.register("blind", task_types=["none"])
    await other.claim("blind")  # by which time does its work
    await other.close()
    explained = await store.explain(waiting.task_id)
    assert (explained.effective_priority, explained.promoted) == (1, True)
    assert explained.promotes_at == clock.now - 10_000 + 108_000


async def test_a_threshold_that_is_switched_off_promotes_no_more_tasks(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    waiting = await store.submit_one(new(priority="medium"))
    other = await reopened(store, open_store, Settings(promotion=Promotion(medium_to_high_seconds=0)))
    await other.close()
    clock.pass_seconds(100_000)
    await store.promote()
    assert (await store.explain(waiting.task_id)).promoted is False


async def test_a_new_budget_applies_to_tasks_that_wait_already(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    await store.submit(*[new("old", priority="medium") for _ in range(2)])
    clock.pass_seconds(1200)
    await store.promote()
    await store.submit(*[new("young", priority="high") for _ in range(4)])
    other = await reopened(store, open_store, Settings(promotion=Promotion(budget=1)))
    await other.close()
    await store.workers.register("w", capacity=9)
    kinds = [task.task_type for task in (await store.claim("w", 9)).tasks]
    assert kinds == ["young", "old", "young", "old", "young", "young"]


# Flushed functions


@pytest.mark.every_server
async def test_flushed_functions_are_not_noticed(store: Store, clock: Clock) -> None:
    async def flushed(act: Awaitable[Any]) -> Any:
        await raw(store).function_flush()
        return await act

    await flushed(store.limits.set("gpu", Slots(limit=1)))
    await flushed(store.workers.register("w", capacity=3))
    first, second = [(await flushed(store.submit_one(new(limits={"gpu": 1})))).task_id for _ in range(2)]
    task: Task = (await flushed(store.claim("w"))).tasks[0]
    await flushed(store.workers.heartbeat("w"))
    await flushed(store.fail("w", Failed(task.task_id, task.fence, jitter=0)))
    clock.pass_seconds(1)
    await flushed(store.promote())
    task = (await flushed(store.claim("w"))).tasks[0]
    await flushed(store.release("w", Grant(task.task_id, task.fence)))
    await flushed(store.limits.pause("gpu"))
    await flushed(store.limits.pause("gpu", False))
    task = (await flushed(store.claim("w"))).tasks[0]
    answers, claimed = await flushed(store.report("w", [Completed(task.task_id, task.fence)], claim=1))
    assert (answers, len(claimed.tasks)) == ([State.COMPLETED], 1)
    await flushed(store.cancel(claimed.tasks[0].task_id))
    await flushed(store.release("w", Grant(claimed.tasks[0].task_id, claimed.tasks[0].fence)))
    await flushed(store.explain(first))
    await flushed(store.stats())
    lease = await flushed(store.limits.renew(await flushed(store.limits.acquire("gpu"))))
    await flushed(store.limits.release(lease))
    await flushed(store.expire())
    await flushed(store.workers.leave("w"))
    assert {(await store.get(t)).status for t in (first, second)} == {State.COMPLETED, State.CANCELLED}


# Lost data


def every_act(store: Store) -> dict[str, Callable[[], Awaitable[object]]]:
    task_id = new().task_id
    return {
        "submit": lambda: store.submit(new()),
        "claim": lambda: store.claim("w"),
        "complete": lambda: store.complete("w", Completed(task_id, 1)),
        "fail": lambda: store.fail("w", Failed(task_id, 1)),
        "report": lambda: store.report("w", [Completed(task_id, 1)], claim=1),
        "renew": lambda: store.limits.renew_known("gpu", task_id),
        "release": lambda: store.release("w", Grant(task_id, 1)),
        "cancel": lambda: store.cancel(task_id),
        "replay": lambda: store.replay(task_id),
        "expire": store.expire,
        "promote": store.promote,
        "stats": store.stats,
        "explain": lambda: store.explain(task_id),
        "pause a type": lambda: store.pause_type("echo"),
        "extend": lambda: store.extend("w", Grant(task_id, 1), 1_000),
        "progress": lambda: store.progress("w", Progress(task_id, 1, 0.5)),
        "outputs": lambda: store.outputs(task_id),
        "declare": lambda: store.declare("code", {}, {}),
        "submit a job": lambda: store.jobs.submit(NewJob(feature_name="f", stages=[[NewStep("s", "s")]])),
        "cancel a job": lambda: store.jobs.cancel(task_id),
        "resume a job": lambda: store.jobs.resume(task_id),
        "define a limit": lambda: store.limits.set("gpu", Slots(limit=1)),
        "pause a limit": lambda: store.limits.pause("gpu"),
        "show limits": store.limits.all,
        "acquire": lambda: store.limits.acquire("gpu"),
        "register": lambda: store.workers.register("w"),
        "heartbeat": lambda: store.workers.heartbeat("w"),
        "drain": lambda: store.workers.drain("w"),
        "purge": lambda: store.purge(task_id),
        "leave": lambda: store.workers.leave("w"),
    }


@pytest.mark.every_server
async def test_after_a_loss_of_data_every_act_says_what_to_do_and_writes_nothing(store: Store) -> None:
    await store.submit_one(new())
    await wipe(store)
    silent = []
    for name, act in every_act(store).items():
        try:
            await act()
            silent.append(name)
        except errors.StoreFault as problem:
            assert "lost its data: open it" in problem.message, name
    assert (silent, await everything(store)) == ([], {})


async def test_after_a_loss_of_data_the_recorder_is_refused_too(store: Store) -> None:
    await wipe(store)
    with pytest.raises(errors.StoreFault):
        await store.run("recorded", "1-0")


@pytest.mark.every_server
async def test_after_a_loss_of_data_opening_makes_the_namespace_usable_again(store: Store) -> None:
    await store.submit_one(new())
    await wipe(store)
    await store.open()
    await store.workers.register("w")
    submitted = await store.submit_one(new())
    assert await run_all(store) == [submitted.task_id]


@pytest.mark.every_server
async def test_settings_define_their_limits_when_the_namespace_is_opened(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(limits={"gpu": Slots(limit=3)}))
    await store.open()
    await wipe(store)
    await store.open()
    assert (await store.limits.get("gpu")).limit == 3
