"""A server that is out of memory takes no new work; work can end, and any process can start and steer it."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Retention, Settings, Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import act, names
from fairlead.store.store import Store
from tests.servers import Server, running
from tests.store.namespace import key_names, raw
from tests.waiting import wait_until

#: What adds work, or is only needed to add some. Everything else frees memory or takes a bounded amount.
REFUSED = {"submit", "submit_job", "tick", "create_key", "spend_key", "progress", "make_ticket", "send_frame"}
FULL = ("--maxmemory", "16mb", "--maxmemory-policy", "noeviction")
BIG = {"text": "x" * 50_000}


async def fill(store: Store) -> list[str]:
    """Until it takes no more; the tasks that it took."""
    accepted = []
    with pytest.raises(errors.StoreFull, match=r"out of memory.*let workers drain it.*raise maxmemory"):
        for _ in range(1000):
            accepted.append((await store.submit_one(NewTask(task_type="echo", parameters=BIG))).task_id)
    return accepted


def test_only_acts_that_add_work_need_memory() -> None:
    assert {name for name in names() if "allow-oom" not in act(name).flags} == REFUSED


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_full_server_refuses_submits_and_continues_everything_else(kind: str) -> None:
    with running(kind, *FULL) as server:
        async with Store.connect(server.url, "full") as store:
            await store.workers.register("w", capacity=50)
            await fill(store)
            tasks = (await store.claim("w", 50)).tasks
            assert tasks
            answers = await store.complete("w", *[Completed(task.task_id, task.fence) for task in tasks])
            assert set(answers) == {State.COMPLETED}
            assert await examine(store.connection) == []


async def steer(server: Server, waiting: list[str]) -> None:
    """What a worker, a gateway and an operator do that start when memory is full already."""
    async with Store.connect(server.url, "full") as store:
        await store.declare("code", {"echo": TaskSettings(limits={"gpu": 1})}, {"gpu": Slots(limit=1)})
        await store.workers.register("late", capacity=50)
        await store.limits.set("gpu", Slots(limit=3))
        await store.limits.pause("gpu")
        await store.limits.pause("gpu", paused=False)
        await store.pause_type("other")
        assert (await store.stats()).workers
        assert (await store.explain(waiting[0])).state is State.QUEUED
        assert [limit.name for limit in await store.limits.all()] == ["gpu"]
        lease = await store.limits.acquire("gpu")
        await store.limits.release(lease)
        (task,) = (await store.claim("late", 1)).tasks
        assert await store.complete("late", Completed(task.task_id, task.fence)) == [State.COMPLETED]
        await store.cancel(waiting[-1])
        assert await examine(store.connection) == []


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_processes_that_start_when_memory_is_full_can_run_and_operate(kind: str) -> None:
    with running(kind, *FULL) as server:
        async with Store.connect(server.url, "full") as store:
            waiting = await fill(store)
            await steer(server, waiting)


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_version_whose_functions_find_no_room_works_and_keeps_them_later(kind: str) -> None:
    with running(kind, *FULL) as server:
        async with Store.connect(server.url, "full") as store:
            waiting = await fill(store)
            await raw(store).function_flush()
            await fill(store)
            await steer(server, waiting[1:])
            await raw(store).config_set("maxmemory", "64mb")
            store.connection.functions_refused_until = 0.0
            await store.submit_one(NewTask(task_type="echo"))
            assert await raw(store).function_list()


def settings(least_seconds: float) -> Settings:
    return Settings(retention=Retention(least_seconds=least_seconds))


async def run_all(store: Store) -> None:
    while tasks := (await store.claim("w", 50)).tasks:
        await store.complete("w", *[Completed(task.task_id, task.fence, {"n": 1}) for task in tasks])


async def used(store: Store) -> float:
    info = await raw(store).info("memory")
    return float(info["used_memory"] / info["maxmemory"])


async def count_tasks(store: Store) -> int:
    return sum(name.startswith("task:") for name in await key_names(store))


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_finished_tasks_are_removed_early_when_memory_is_full(kind: str) -> None:
    with running(kind, *FULL) as server:
        async with Store.connect(server.url, "full", settings(least_seconds=0)) as store:
            await store.workers.register("w", capacity=50)
            await fill(store)
            await run_all(store)
            assert await used(store) > 0.95
            with pytest.raises(errors.StoreFull):
                await store.submit_one(NewTask(task_type="echo", parameters=BIG))

            async def has_room() -> bool:
                assert (await store.upkeep.inspect()).policy == "noeviction"
                await store.upkeep.forget()
                return await used(store) < 0.9

            await wait_until(has_room)
            assert (await store.upkeep.inspect()).pressed is None
            kept = await count_tasks(store)
            assert kept > 100  # no more went than had to
            await store.submit_one(NewTask(task_type="echo", parameters=BIG))
            assert await examine(store.connection) == []


async def test_just_finished_tasks_are_kept_even_when_memory_is_full() -> None:
    with running("valkey", *FULL) as server:
        async with Store.connect(server.url, "full", settings(least_seconds=1000)) as store:
            await store.workers.register("w", capacity=50)
            accepted = await fill(store)
            await run_all(store)
            assert (await store.upkeep.inspect()).pressed is not None
            await store.upkeep.forget()
            assert await count_tasks(store) == len(accepted)


async def test_unrecorded_events_are_removed_when_memory_is_full() -> None:
    with running("valkey", *FULL) as server:
        async with Store.connect(server.url, "full") as store:
            await store.workers.register("w", capacity=200)
            for _ in range(10):
                await store.submit(*[NewTask(task_type="echo") for _ in range(200)])
            waiting = await fill(store)
            await store.upkeep.inspect()
            await store.cancel(waiting[0])
            meta = await raw(store).hgetall(store.connection.keys.meta)
            kept = int(meta[b"events"]) - int(meta[b"events_gone"])
            assert 800 < kept <= 1000  # entries go as a whole
            assert int(meta[b"lost"]) == int(meta[b"events_gone"])
            assert await examine(store.connection) == []


async def test_events_wait_for_their_recorder_even_when_memory_is_full() -> None:
    with running("valkey", *FULL) as server:
        async with Store.connect(server.url, "full") as store:
            await store.submit_one(NewTask(task_type="echo"))
            ((first, _),) = await raw(store).xrange(store.connection.keys.key("events"))
            assert (await store.run("recorded", first.decode()))["dropped"] == 1
            for _ in range(10):
                await store.submit(*[NewTask(task_type="echo") for _ in range(200)])
            waiting = await fill(store)
            await store.upkeep.inspect()
            await store.cancel(waiting[0])
            meta = await raw(store).hgetall(store.connection.keys.meta)
            assert int(meta[b"events"]) - int(meta[b"events_gone"]) > 2000
            assert b"lost" not in meta
