"""What cannot be accepted is refused with the name of the field, and leaves no trace."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import MOST_PER_CALL, NewTask, Submitted
from fairlead.settings import Rate, Settings, Slots, TaskSettings
from fairlead.store.keys import Keys
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything

SURROGATE = "\ud800"
NOT_A_NUMBER: Any = math.nan


def nested(depth: int) -> Any:
    """`depth` objects in each other; the innermost is empty."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def circle() -> Any:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{i}" for i in range(count))


@pytest.fixture
def settings() -> Settings:
    five = {f"of-type-{i}": 1 for i in range(5)}
    limits: dict[str, Slots | Rate] = {name: Slots(limit=1) for name in (*five, *names(9))}
    return Settings(
        limits={**limits, "gpu": Slots(limit=2), "api": Rate(count=1, period_seconds=1, burst=3)},
        tasks={"needy": TaskSettings(limits=five, required_capabilities=list(names(9)))},
    )


PARAMETERS: dict[str, tuple[Any, str]] = {
    "NaN": ({"a": math.nan}, "parameters.a"),
    "infinity in a list in an object": ({"a": [1, {"b": -math.inf}]}, "parameters.a[1].b"),
    "a lone surrogate in a key": ({"a": {SURROGATE: 1}}, "parameters.a"),
    "a lone surrogate in a value": ({"a": ["", SURROGATE]}, "parameters.a[1]"),
    "300 KiB": ({"a": "x" * 300 * 1024}, "parameters"),
    "300 KiB by escaping": ({"a": "\x00" * 60 * 1024}, "parameters"),
    "33 deep": (nested(33), "parameters" + 32 * ".a"),
    "33 lists deep": ({"a": [[[nested(29)]]]}, "parameters.a[0][0][0]" + 28 * ".a"),
    "a circle": (circle(), "parameters" + 32 * ".a"),
    "a set": ({"a": {1}}, "parameters.a"),
    "bytes": ({"a": b"x"}, "parameters.a"),
    "an object": ({"a": object()}, "parameters.a"),
    "a key that is no string": ({"a": {1: 2}}, "parameters.a"),
    "a subclass nobody knows": ({"a": type("Odd", (str,), {})("x")}, "parameters"),
    "too many digits": ({"a": 10**5000}, "parameters"),
    "a list at the top": ([1], "parameters"),
    "nothing at the top": (None, "parameters"),
}

FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown limit": ({"limits": {"nope": 1}}, "limits.nope"),
    "more units than the limit has": ({"limits": {"gpu": 3}}, "limits.gpu"),
    "more units than the burst has": ({"limits": {"api": 4}}, "limits.api"),
    "more units than the group it defines": (
        {"limits": {"new": 3}, "concurrency_group": "new", "concurrency_limit": 2},
        "limits.new",
    ),
    "no units": ({"limits": {"gpu": 0}}, "limits.gpu"),
    "half a unit": ({"limits": {"gpu": 0.5}}, "limits.gpu"),
    "a unit that is true": ({"limits": {"gpu": True}}, "limits.gpu"),
    "a limit that is no name": ({"limits": {"gpu=1,api": 1}}, "limits"),
    "limits as a list": ({"limits": ["gpu"]}, "limits"),
    "9 limits": ({"limits": dict.fromkeys(names(9), 1)}, "limits"),
    "8 limits and a group": ({"limits": dict.fromkeys(names(8), 1), "concurrency_group": "gpu"}, "limits"),
    "8 limits and the type's group": (
        {"limits": dict.fromkeys(names(8), 1), "concurrency_limit": 1},
        "limits",
    ),
    "5 limits of the type and 4 more": (
        {"task_type": "needy", "limits": dict.fromkeys(names(4), 1)},
        "limits",
    ),
    "an unknown group": ({"concurrency_group": "nope"}, "limits.nope"),
    "a group that is no name": ({"concurrency_group": "a b", "concurrency_limit": 1}, "concurrency_group"),
    "a group of 0": ({"concurrency_group": "g", "concurrency_limit": 0}, "concurrency_limit"),
    "unknown priority": ({"priority": "urgent"}, "priority"),
    "a priority by number": ({"priority": 0}, "priority"),
    "over-long type": ({"task_type": "t" * 201}, "task_type"),
    "empty type": ({"task_type": ""}, "task_type"),
    "a type with the signs of a lane": ({"task_type": "a;b|c"}, "task_type"),
    "17 capabilities": ({"required_capabilities": names(17)}, "required_capabilities"),
    "9 capabilities of the type and 8 more": (
        {"task_type": "needy", "required_capabilities": tuple(f"more{i}" for i in range(8))},
        "required_capabilities",
    ),
    "a capability with a comma": ({"required_capabilities": ("a,b",)}, "required_capabilities"),
    "capabilities as text": ({"required_capabilities": "gpu"}, "required_capabilities"),
    "a lone surrogate in user_id": ({"user_id": SURROGATE}, "user_id"),
    "an over-long user_id": ({"user_id": "u" * 201}, "user_id"),
    "an empty tenant": ({"tenant": ""}, "tenant"),
    "a line break in a tenant": ({"tenant": "a\nb"}, "tenant"),
    "an over-long idempotency key": ({"idempotency_key": "k" * 201}, "idempotency_key"),
    "a lone surrogate in trace_id": ({"trace_id": SURROGATE}, "trace_id"),
    "a job_id that is a number": ({"job_id": 7}, "job_id"),
    "a lone surrogate in duration": ({"duration": SURROGATE}, "duration"),
    "an UUID in capitals": ({"task_id": "0190F000-0000-7000-8000-00000000000A"}, "task_id"),
    "no UUID": ({"task_id": "task-1"}, "task_id"),
    "an UUID that is a number": ({"task_id": 5}, "task_id"),
    "a timeout of 0": ({"timeout_seconds": 0}, "timeout_seconds"),
    "a negative timeout": ({"timeout_seconds": -1}, "timeout_seconds"),
    "a timeout that is NaN": ({"timeout_seconds": math.nan}, "timeout_seconds"),
    "an endless timeout": ({"timeout_seconds": math.inf}, "timeout_seconds"),
    "a timeout beyond every number": ({"timeout_seconds": 10**400}, "timeout_seconds"),
    "a timeout as text": ({"timeout_seconds": "5"}, "timeout_seconds"),
    "a max_wait of 0": ({"max_wait_seconds": 0}, "max_wait_seconds"),
    "a max_wait that is NaN": ({"max_wait_seconds": math.nan}, "max_wait_seconds"),
    "a negative delay": ({"delay_seconds": -0.5}, "delay_seconds"),
    "a delay that is NaN": ({"delay_seconds": math.nan}, "delay_seconds"),
    "run_at and delay": ({"run_at": 5, "delay_seconds": 1}, "run_at"),
    "a negative run_at": ({"run_at": -1}, "run_at"),
    "a run_at with a fraction": ({"run_at": 1.5}, "run_at"),
    "a run_at beyond every clock": ({"run_at": 10**30}, "run_at"),
    "negative retries": ({"max_retries": -1}, "max_retries"),
    "too many retries": ({"max_retries": 1001}, "max_retries"),
    "retries that are true": ({"max_retries": True}, "max_retries"),
}

BAD = {
    **{
        name: (NewTask(task_type="echo", parameters=value), field)
        for name, (value, field) in PARAMETERS.items()
    },
    **{
        name: (NewTask(**{"task_type": "echo", **options}), field)
        for name, (options, field) in FIELDS.items()
    },
}


async def refused_field(act: Awaitable[object]) -> str:
    """The field by which an act is refused, or in its place the one report of a batch."""
    try:
        answer = await act
    except errors.InvalidInput as problem:
        return problem.field
    match answer:
        case [errors.InvalidInput() as refused]:
            return str(refused.field)
    return "was not refused"


async def test_a_bad_task_is_refused_by_the_name_of_its_field_and_leaves_no_trace(store: Store) -> None:
    before = await everything(store)
    found = {name: await refused_field(store.submit_one(task)) for name, (task, _) in BAD.items()}
    assert found == {name: field for name, (_, field) in BAD.items()}
    assert await everything(store) == before


async def test_in_a_batch_the_good_ones_beside_the_bad_ones_are_accepted(store: Store) -> None:
    batch = [task for bad, _ in BAD.values() for task in (bad, NewTask(task_type="echo"))]
    answers = await store.submit(*batch)
    assert [type(answer) for answer in answers] == [errors.InvalidInput, Submitted] * len(BAD)
    assert (await store.stats()).queues["medium"].depth == len(BAD)


async def test_values_at_the_bounds_are_accepted(store: Store) -> None:
    task = NewTask(
        task_type="t" * 200,
        parameters=nested(32) | {"big": "x" * (255 * 1024), "number": 10**30, "text": "\x00 é 𝄞"},
        limits=dict.fromkeys(names(7), 1),
        concurrency_group="new",
        concurrency_limit=1,
        required_capabilities=names(16),
        user_id="ü" * 200,
        timeout_seconds=0.001,
        delay_seconds=0,
    )
    submitted = await store.submit_one(task)
    stored = await store.get(submitted.task_id)
    assert (stored.parameters, stored.timeout_ms, len(stored.limits)) == (task.parameters, 1, 8)


async def test_more_than_a_thousand_tasks_at_once_are_refused_as_a_whole(store: Store) -> None:
    before = await everything(store)
    with pytest.raises(errors.InvalidInput) as refused:
        await store.submit(*[NewTask(task_type="echo")] * (MOST_PER_CALL + 1))
    assert (refused.value.field, await everything(store)) == ("tasks", before)


WORKERS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"worker": ""}, "worker_id"),
    "a name with a space": ({"worker": "a b"}, "worker_id"),
    "no capacity": ({"capacity": 0}, "capacity"),
    "a capacity that is true": ({"capacity": True}, "capacity"),
    "half a capacity": ({"capacity": 1.5}, "capacity"),
    "too much capacity": ({"capacity": 100_001}, "capacity"),
    "a negative reserve": ({"capacity": 2, "reserve": -1}, "reserve"),
    "a reserve above the capacity": ({"capacity": 2, "reserve": 3}, "reserve"),
    "a reserve that is NaN": ({"capacity": 2, "reserve": math.nan}, "reserve"),
    "a capability with a comma": ({"capabilities": ["a,b"]}, "capabilities"),
    "capabilities as text": ({"capabilities": "gpu"}, "capabilities"),
    "a capability that is a number": ({"capabilities": ["gpu", 5]}, "capabilities"),
    "a type with a semicolon": ({"task_types": ["a;b"]}, "task_types"),
    "types as text": ({"task_types": "echo"}, "task_types"),
    "a lone surrogate as name": ({"name": SURROGATE}, "name"),
    "a version without end": ({"version": "1" * 201}, "version"),
}


async def test_a_bad_worker_is_not_registered(store: Store) -> None:
    before = await everything(store)
    found = {
        name: await refused_field(store.workers.register(**{"worker": "w", **options}))
        for name, (options, _) in WORKERS.items()
    }
    assert found == {name: field for name, (_, field) in WORKERS.items()}
    assert await everything(store) == before


LIMITS: dict[str, tuple[str, Any, str]] = {
    "no name": ("", Slots(limit=1), "name"),
    "a name with a sign of the sub-queues": ("a=1", Slots(limit=1), "name"),
    "an over-long name": ("l" * 201, Slots(limit=1), "name"),
    "less than nothing": ("l", Slots(limit=-1), "limit"),
    "half a slot": ("l", Slots(limit=NOT_A_NUMBER), "limit"),
    "true slots": ("l", Slots(limit=True), "limit"),
    "too many slots": ("l", Slots(limit=1_000_000_001), "limit"),
    "a rate of 0": ("l", Rate(count=0, period_seconds=1, burst=1), "rate"),
    "no burst": ("l", Rate(count=1, period_seconds=1, burst=0), "burst"),
    "no period": ("l", Rate(count=1, period_seconds=0, burst=1), "rate"),
    "a period that is NaN": ("l", Rate(count=1, period_seconds=math.nan, burst=1), "rate"),
    "an endless period": ("l", Rate(count=1, period_seconds=math.inf, burst=1), "rate"),
    "a plain number": ("l", 5, "limit"),
    "nothing": ("l", None, "limit"),
}


async def test_a_bad_limit_is_not_defined(store: Store) -> None:
    before = await everything(store)
    found = {
        case: await refused_field(store.limits.set(name, wanted))
        for case, (name, wanted, _) in LIMITS.items()
    }
    assert found == {case: field for case, (_, _, field) in LIMITS.items()}
    assert await everything(store) == before


LEASES: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ""}, "name"),
    "no units": ({"units": 0}, "units"),
    "more units than there are": ({"units": 3}, "units"),
    "units that are NaN": ({"units": math.nan}, "units"),
    "no time": ({"lease_ms": 0}, "lease_ms"),
    "time that is NaN": ({"lease_ms": math.nan}, "lease_ms"),
    "an odd id": ({"lease_id": "a b"}, "lease_id"),
    "a lone surrogate as holder": ({"holder": SURROGATE}, "holder"),
}


async def test_an_acquire_with_bad_options_takes_nothing(store: Store) -> None:
    before = await everything(store)
    found = {
        name: await refused_field(store.limits.acquire(**{"name": "gpu", **options}))
        for name, (options, _) in LEASES.items()
    }
    assert found == {name: field for name, (_, field) in LEASES.items()}
    assert await everything(store) == before


async def test_an_undefined_limit_is_unknown_to_every_act(store: Store) -> None:
    before = await everything(store)
    for act in (store.limits.get, store.limits.pause, store.limits.acquire):
        with pytest.raises(errors.UnknownLimit):
            await act("nope")
    assert await everything(store) == before


async def test_a_bad_result_is_refused_and_the_task_still_runs(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo"))
    task = await claim_one(store)
    before = await everything(store)
    for result in (math.nan, {"a": {1}}, "x" * 300 * 1024, [SURROGATE], nested(33)):
        field = await refused_field(store.complete("w", Completed(task.task_id, task.fence, result)))
        assert field.startswith("result")
    assert await everything(store) == before


def test_a_namespace_is_named_by_few_signs(subtests: pytest.Subtests) -> None:
    for namespace in ["", "a b", "a{b", "a}b", "é", "n" * 65, "a:b", "a*", "a\n"]:
        with subtests.test(namespace=namespace):
            with pytest.raises(errors.InvalidInput) as refused:
                Keys(namespace)
            assert refused.value.field == "namespace"


async def test_bad_limits_of_the_settings_are_refused_when_the_namespace_is_opened(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(limits={"a b": Slots(limit=1)}))
    with pytest.raises(errors.InvalidInput):
        await store.open()


async def test_a_failure_is_accepted_with_any_message(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo"))
    task = await claim_one(store)
    unreadable = b"caf\xe9".decode(errors="surrogateescape")  # as in the message of an error about a file
    answer = await store.fail("w", Failed(task.task_id, task.fence, message=f"no {unreadable}"))
    assert answer == [State.DELAYED]


FAILURES: dict[str, Any] = {
    "a pause that is NaN": {"retry_after_ms": math.nan},
    "an endless pause": {"retry_after_ms": math.inf},
    "a pause into the past": {"retry_after_ms": -1},
    "a chance that is NaN": {"jitter": math.nan},
    "more than all chance": {"jitter": 1001},
}


@pytest.mark.parametrize("numbers", FAILURES.values(), ids=FAILURES)
async def test_a_failure_with_an_impossible_number_is_refused(store: Store, numbers: dict[str, Any]) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo"))
    task = await claim_one(store)
    before = await everything(store)
    field = await refused_field(store.fail("w", Failed(task.task_id, task.fence, **numbers)))
    assert (field, await everything(store)) == (next(iter(numbers)), before)


async def test_an_impossible_id_or_type_is_refused_by_every_act(store: Store) -> None:
    before = await everything(store)
    for act in (store.get, store.cancel, store.replay, store.explain, store.claim, store.pause_type):
        with pytest.raises(errors.FairleadError):
            await act(SURROGATE)
    with pytest.raises(errors.InvalidInput):
        await store.pause_type("a;b|c")
    assert await everything(store) == before


async def test_a_lease_without_a_task_given_to_release_is_answered(store: Store) -> None:
    lease = await store.limits.acquire("gpu")
    assert len(await store.release("", Grant(lease.lease_id, lease.fence))) == 1
