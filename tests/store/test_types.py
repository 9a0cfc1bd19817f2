"""Declared task types: every task gets what its type declares, whoever submits it."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.declarations import Origin
from fairlead.model.states import State
from fairlead.model.task import Submitted, Task
from fairlead.settings import Priorities, PriorityDefaults, Rate, Settings, Slots, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, key_names, new, raw, reopened

GPU: dict[str, Slots | Rate] = {"gpu": Slots(limit=8)}
ORIGINS: tuple[Origin, ...] = ("code", "file")


def of_type(**facts: Any) -> TaskSettings:
    return TaskSettings(**facts)


async def submitted(store: Store, task_type: str = "draw", **options: Any) -> Task:
    return await store.get((await store.submit_one(new(task_type, **options))).task_id)


# What a task gets


async def test_a_client_that_does_not_know_the_type_submits_a_task_that_has_its_limits(
    store: Store, open_store: Callable[..., Store]
) -> None:
    settings = Settings(
        limits=GPU,
        tasks={
            "draw": of_type(
                limits={"gpu": 2}, required_capabilities=["b", "a"], timeout_seconds=7, max_retries=9
            )
        },
    )
    await reopened(store, open_store, settings)
    task = await submitted(store)
    assert (task.limits, task.required_capabilities) == ({"gpu": 2}, ("a", "b"))
    assert (task.timeout_ms, task.max_retries) == (7_000, 9)
    other = await submitted(store, "other")
    assert (other.limits, other.required_capabilities) == ({}, ())


async def test_the_options_of_a_task_are_added(store: Store) -> None:
    limits = {"a": Slots(limit=9), "b": Slots(limit=9), "c": Slots(limit=9)}
    await store.declare(
        "code", {"draw": of_type(limits={"b": 3, "c": 3}, required_capabilities=["x"])}, limits
    )
    task = await submitted(
        store, limits={"a": 1, "b": 2, "c": 5}, required_capabilities=("y", "x"), max_retries=0
    )
    assert task.limits == {"a": 1, "b": 3, "c": 5}, (
        "a task may request more units than its type has, not fewer"
    )
    assert task.required_capabilities == ("x", "y")
    assert task.max_retries == 0


async def test_a_file_goes_before_code_name_by_name(store: Store) -> None:
    limits = {"a": Slots(limit=9), "b": Slots(limit=9)}
    await store.declare(
        "code",
        {
            "draw": of_type(
                limits={"a": 5, "b": 5}, required_capabilities=["x"], timeout_seconds=5, max_retries=5
            )
        },
        limits,
    )
    await store.declare(
        "file", {"draw": of_type(limits={"a": 2}, required_capabilities=["y"], timeout_seconds=2)}, {}
    )
    task = await submitted(store)
    assert (task.limits, task.required_capabilities) == ({"a": 2, "b": 5}, ("x", "y"))
    assert (task.timeout_ms, task.max_retries) == (2_000, 5)
    own = await submitted(store, timeout_seconds=1)
    assert own.timeout_ms == 1_000


class TestPriorities:
    @pytest.fixture
    def settings(self) -> Settings:
        low = PriorityDefaults(max_retries=7, timeout_seconds=77)
        return Settings(priorities=Priorities(low=low))

    async def test_an_omitted_option_is_the_default_of_the_priority(self, store: Store) -> None:
        await store.declare("code", {"draw": of_type(max_retries=2)}, {})
        task = await submitted(store, priority="low")
        assert (task.timeout_ms, task.max_retries) == (77_000, 2)


async def test_a_group_is_added_to_the_limits_of_the_type(store: Store) -> None:
    await store.declare("code", {"draw": of_type(limits={"gpu": 2})}, GPU)
    task = await submitted(store, concurrency_group="mine", concurrency_limit=3)
    assert task.limits == {"gpu": 2, "mine": 1}
    task = await submitted(store, concurrency_group="gpu")
    assert task.limits == {"gpu": 2}


async def test_tasks_with_the_same_needs_share_one_sub_queue_whoever_named_them(store: Store) -> None:
    limits = {"Z-1": Slots(limit=9), "a_1": Slots(limit=9), "A": Slots(limit=9)}
    await store.declare("code", {}, limits)
    await store.submit(new("draw", limits={"Z-1": 1, "a_1": 1, "A": 1}))
    await store.declare("code", {"draw": of_type(limits={"a_1": 1, "A": 1})}, limits)
    await store.submit(new("draw", limits={"Z-1": 1}))
    queues = [name for name in await key_names(store) if name.startswith("queue:")]
    assert queues == ["queue:1n:draw;|A=1,Z-1=1,a_1=1"]


async def test_a_task_that_waits_already_is_left_unchanged(store: Store) -> None:
    before = await submitted(store)
    await store.declare("code", {"draw": of_type(limits={"gpu": 2}, timeout_seconds=1)}, GPU)
    assert await store.get(before.task_id) == before


async def test_the_same_task_under_the_same_key_is_the_first_one_whatever_was_declared_since(
    store: Store,
) -> None:
    first = await store.submit_one(new("draw", idempotency_key="k"))
    await store.declare("code", {"draw": of_type(limits={"gpu": 2}, timeout_seconds=1, max_retries=1)}, GPU)
    again = await store.submit_one(new("draw", idempotency_key="k"))
    assert (again.task_id, again.repeated) == (first.task_id, True)
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(new("draw", idempotency_key="k", timeout_seconds=1))


async def test_types_are_read_once_per_act_and_type(live_store: Store) -> None:
    client = raw(live_store)
    await live_store.submit(new("a"), new("b"))
    await client.config_resetstat()
    await live_store.submit(*[new("a", delay_seconds=9) for _ in range(50)], new("b", delay_seconds=9))
    stats = await client.info("commandstats")
    assert stats["cmdstat_hmget"]["calls"] == 2


# What is refused


async def test_too_many_limits_with_those_of_the_type_are_refused(store: Store) -> None:
    limits = {f"l{i}": Slots(limit=1) for i in range(9)}
    await store.declare("code", {"draw": of_type(limits={f"l{i}": 1 for i in range(5)})}, limits)
    await store.declare("file", {"draw": of_type(limits={f"l{i}": 1 for i in range(5, 8)})}, {})
    accepted, refused = await store.submit(new("draw", limits={"l0": 1}), new("draw", limits={"l8": 1}))
    assert isinstance(accepted, Submitted)
    assert isinstance(refused, errors.InvalidInput)
    assert (refused.field, refused.code) == ("limits", "invalid_input")
    assert "names 9 with those of its type, at most 8" in refused.message


async def test_too_many_capabilities_with_those_of_the_type_are_refused(store: Store) -> None:
    some = [f"c{i}" for i in range(16)]
    await store.declare("code", {"draw": of_type(required_capabilities=some)}, {})
    accepted, refused = await store.submit(
        new("draw", required_capabilities=("c3",)), new("draw", required_capabilities=("more",))
    )
    assert isinstance(accepted, Submitted)
    assert isinstance(refused, errors.InvalidInput)
    assert refused.field == "required_capabilities"


BAD_TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "a limit nobody defined": ({"draw": of_type(limits={"nope": 1})}, "tasks.draw.limits.nope"),
    "no name": ({"a;b": of_type()}, "tasks.a;b"),
    "a limit that is no name": ({"draw": of_type(limits={"a=1": 1})}, "tasks.draw.limits"),
    "no units": ({"draw": of_type(limits={"gpu": 0})}, "tasks.draw.limits.gpu"),
    "limits as a list": ({"draw": of_type(limits=["gpu"])}, "tasks.draw.limits"),
    "9 limits": ({"draw": of_type(limits={f"l{i}": 1 for i in range(9)})}, "tasks.draw.limits"),
    "a capability that is no name": (
        {"draw": of_type(required_capabilities=["a;b|c=1"])},
        "tasks.draw.required_capabilities",
    ),
    "capabilities as text": (
        {"draw": of_type(required_capabilities="gpu")},
        "tasks.draw.required_capabilities",
    ),
    "17 capabilities": (
        {"draw": of_type(required_capabilities=[f"c{i}" for i in range(17)])},
        "tasks.draw.required_capabilities",
    ),
    "no time": ({"draw": of_type(timeout_seconds=0)}, "tasks.draw.timeout_seconds"),
    "a time that is NaN": ({"draw": of_type(timeout_seconds=math.nan)}, "tasks.draw.timeout_seconds"),
    "negative retries": ({"draw": of_type(max_retries=-1)}, "tasks.draw.max_retries"),
    "too many retries": ({"draw": of_type(max_retries=1001)}, "tasks.draw.max_retries"),
}
BAD_LIMITS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"a b": Slots(limit=1)}, "limits.a b"),
    "less than nothing": ({"gpu": Slots(limit=-1)}, "limits.gpu"),
    "a plain number": ({"gpu": 5}, "limits.gpu"),
    "no burst": ({"api": Rate(count=1, period_seconds=1, burst=0)}, "limits.api.burst"),
    "an endless period": ({"api": Rate(count=1, period_seconds=math.inf, burst=1)}, "limits.api.rate"),
}


async def test_a_bad_declaration_is_refused_by_its_name_and_leaves_no_trace(store: Store) -> None:
    before = await everything(store)
    wrong: dict[str, tuple[Any, Any, str]]
    wrong = {f"type: {name}": (types, {}, field) for name, (types, field) in BAD_TYPES.items()}
    wrong |= {f"limit: {name}": ({}, limits, field) for name, (limits, field) in BAD_LIMITS.items()}
    found = {}
    for name, (types, limits, _) in wrong.items():
        with pytest.raises(errors.InvalidInput) as refused:
            await store.declare("code", {"good": of_type(), **types}, {**GPU, **limits})
        found[name] = refused.value.field
    assert found == {name: field for name, (_, _, field) in wrong.items()}
    assert await everything(store) == before


async def test_settings_that_name_an_undefined_limit_do_not_open_the_namespace(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(tasks={"draw": of_type(limits={"nope": 1})}))
    with pytest.raises(errors.InvalidInput) as refused:
        await store.open()
    assert (refused.value.field, refused.value.code) == ("tasks.draw.limits.nope", "unknown_limit")


# What is declared again


async def test_a_file_is_declared_as_a_whole_and_code_type_by_type(store: Store) -> None:
    for origin in ORIGINS:
        types = {f"{origin}1": of_type(max_retries=1), f"{origin}2": of_type(max_retries=1)}
        await store.declare(origin, types, {})
    for origin in ORIGINS:
        await store.declare(origin, {f"{origin}2": of_type(max_retries=2)}, {})
    found = await raw(store).hgetall(store.connection.keys.key("types"))
    assert found == {
        b"code:code1": b'{"max_retries":1}',
        b"code:code2": b'{"max_retries":2}',
        b"file:file2": b'{"max_retries":2}',
    }
    await store.declare("file", {}, {})
    await store.declare("code", {"code1": of_type(), "code2": of_type()}, {})
    task = await submitted(store, "code1")
    assert task.max_retries == 8


async def test_a_client_that_only_joins_declares_nothing(
    store: Store, open_store: Callable[..., Store]
) -> None:
    await reopened(store, open_store, Settings(tasks={"draw": of_type(max_retries=8)}))
    before = await everything(store)
    name = store.connection.keys.namespace
    joining = open_store(namespace=name, clock=store.clock, settings=Settings(limits=GPU))
    await joining.open(govern=False)
    await joining.close()
    after = await everything(store)
    assert (after["types"], "limit:gpu" in after) == (before["types"], False)


async def test_the_same_limit_declared_again_leaves_what_an_operator_has_set(store: Store) -> None:
    await store.declare("file", {}, GPU)
    await store.limits.set("gpu", Slots(limit=3))
    await store.declare("file", {}, GPU)
    assert (await store.limits.get("gpu")).limit == 3
    await store.declare("file", {}, {"gpu": Slots(limit=9)})
    assert (await store.limits.get("gpu")).limit == 9


async def test_each_origin_is_compared_with_what_it_declared_itself(store: Store) -> None:
    await store.declare("code", {}, {"gpu": Slots(limit=2)})
    await store.declare("file", {}, {"gpu": Slots(limit=5)})
    await store.declare("code", {}, {"gpu": Slots(limit=2)})
    assert (await store.limits.get("gpu")).limit == 5


async def test_a_rate_may_be_declared_and_become_slots(store: Store) -> None:
    await store.declare("code", {}, {"api": Rate(count=10, period_seconds=1, burst=3)})
    before = await store.limits.get("api")
    assert (before.kind, before.limit, before.interval_us) == ("rate", 3, 100_000)
    await store.declare("code", {}, {"api": Slots(limit=4)})
    after = await store.limits.get("api")
    assert (after.kind, after.limit, after.interval_us) == ("slots", 4, None)


async def test_a_limit_declared_larger_wakes_a_worker(live_store: Store) -> None:
    await live_store.declare("file", {}, {"gpu": Slots(limit=1)})
    await live_store.workers.register("busy")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await claim_one(live_store, "busy")
    await live_store.workers.register("w")
    assert (await live_store.claim("w", idle=True)).tasks == []
    await live_store.declare("file", {}, {"gpu": Slots(limit=2)})
    assert await live_store.workers.wait("w", 20)
    assert (await claim_one(live_store, "w")).status is State.EXECUTING


async def test_declaring_twice_is_declaring_once(store: Store) -> None:
    await store.declare("code", {"draw": of_type(limits={"gpu": 1})}, GPU)
    before = await everything(store)
    await store.declare("code", {"draw": of_type(limits={"gpu": 1})}, GPU)
    assert await everything(store) == before


async def test_a_limit_of_the_file_overrides_the_code(store: Store) -> None:
    await store.declare("file", {}, {"gpu": Slots(limit=2)})
    await store.declare("code", {}, {"gpu": Slots(limit=1)})
    assert (await store.limits.get("gpu")).limit == 2
    await store.declare("file", {}, {})
    await store.declare("code", {}, {"gpu": Slots(limit=1)})
    assert (await store.limits.get("gpu")).limit == 1
