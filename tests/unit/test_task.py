"""What a task is: texts, needs, JSON, and what can be seen to be wrong without a store."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.checks import (
    LATEST,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_SECONDS,
    MOST_UNITS,
    check_capabilities,
    check_ms,
    check_name,
    check_seconds,
    check_short,
    check_units,
    to_json,
)
from fairlead.errors import InvalidInput
from fairlead.model.priority import Priority, priority_named
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task, TaskError, check, read_limits, write_limits

names = st.from_regex(r"[A-Za-z0-9_.:-]{1,20}", fullmatch=True)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


def field_refused(call: Any, *arguments: object, **named: object) -> str:
    with pytest.raises(InvalidInput) as refused:
        call(*arguments, **named)
    return refused.value.field


# Needs and priorities


@given(st.dictionaries(names, st.integers(1, MOST_UNITS), max_size=8))
def test_needs_read_back_as_they_were_written(needs: dict[str, int]) -> None:
    assert read_limits(write_limits(needs)) == needs


def test_the_same_needs_have_one_text_whatever_their_order() -> None:
    assert write_limits({"b": 24, "a": 1}) == write_limits({"a": 1, "b": 24}) == "a=1,b=24"


def test_no_needs_are_an_empty_text() -> None:
    assert (write_limits({}), read_limits("")) == ("", {})


@pytest.mark.parametrize("priority", Priority)
def test_a_priority_is_known_by_its_word(priority: Priority) -> None:
    assert priority_named(priority.word) is priority


def test_another_word_is_not_a_priority(subtests: pytest.Subtests) -> None:
    for name in ["HIGH", "", "urgent", 0, None, ["high"]]:
        with subtests.test(name=name):
            assert field_refused(priority_named, name) == "priority"


# JSON


@given(plain)
def test_plain_values_pass_and_read_back_the_same(value: Any) -> None:
    found = json.loads(to_json("result", value))
    assert found == value


def test_json_is_compact_and_keeps_unicode() -> None:
    assert to_json("result", {"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}'


def nested(depth: int, inner: object) -> object:
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("inner", [0, "x", None])
def test_as_many_levels_as_allowed_pass_and_one_more_does_not(inner: object) -> None:
    assert to_json("result", nested(MOST_DEPTH, inner))
    assert field_refused(to_json, "result", nested(MOST_DEPTH + 1, inner)) == "result" + "[0]" * MOST_DEPTH


def test_an_empty_level_is_a_level() -> None:
    assert to_json("result", nested(MOST_DEPTH - 1, {}))
    assert field_refused(to_json, "result", nested(MOST_DEPTH, {})) == "result" + "[0]" * MOST_DEPTH


def test_the_size_is_that_of_the_json() -> None:
    assert len(to_json("result", "x" * (MOST_BYTES - 2))) == MOST_BYTES
    with pytest.raises(InvalidInput) as refused:
        to_json("result", "x" * (MOST_BYTES - 1))
    assert (refused.value.field, refused.value.code) == ("result", "too_large")
    assert field_refused(to_json, "result", "é" * (MOST_BYTES // 2)) == "result"


def test_a_value_that_is_not_json_is_refused_with_its_path(subtests: pytest.Subtests) -> None:
    for value, field in [
        (math.nan, "result"),
        ({"a": [0, math.inf]}, "result.a[1]"),
        ({"a": "\udc00"}, "result.a"),
        ({"\udc00": 1}, "result"),
        ({"a": {2: 1}}, "result.a"),
        ([b"x"], "result[0]"),
        ((1, {2}), "result[1]"),
        (object(), "result"),
        (1 + 2j, "result"),
    ]:
        with subtests.test(value=value, field=field):
            assert field_refused(to_json, "result", value) == field


# Small things


@pytest.mark.parametrize("value", ["a", "A-b_c.d:e", "x" * 200])
def test_a_name_is_made_of_few_signs(value: str) -> None:
    check_name("name", value)


def test_other_characters_are_not_allowed_in_a_name(subtests: pytest.Subtests) -> None:
    for value in ["", "x" * 201, "a b", "a,b", "a;b", "a|b", "a=b", "a@b", "ä", "a\n", None, 5, b"a"]:
        with subtests.test(value=value):
            assert field_refused(check_name, "name", value) == "name"


def test_units_are_whole_and_at_least_one(subtests: pytest.Subtests) -> None:
    for value in [0, -1, MOST_UNITS + 1, 1.0, True, "1", None, math.nan]:
        with subtests.test(value=value):
            check_units("units", 1)
            check_units("units", MOST_UNITS)
            assert field_refused(check_units, "units", value) == "units"


def test_a_time_in_ms_is_whole_and_at_least_one(subtests: pytest.Subtests) -> None:
    for value in [0, -5, 1.5, True, "5", None, math.nan, MOST_SECONDS * 1000 + 1, 10**400]:
        with subtests.test(value=value):
            check_ms("lease_ms", 1)
            assert field_refused(check_ms, "lease_ms", value) == "lease_ms"


def test_seconds_are_a_number_of_at_least_a_millisecond(subtests: pytest.Subtests) -> None:
    for value in [0, 0.0009, -1, math.nan, math.inf, True, "5", MOST_SECONDS + 1, 10**400]:
        with subtests.test(value=value):
            for good in (None, 0.001, 1, MOST_SECONDS):
                check_seconds("timeout_seconds", good)
            assert field_refused(check_seconds, "timeout_seconds", value) == "timeout_seconds"


def test_where_zero_is_meant_zero_seconds_pass() -> None:
    check_seconds("delay_seconds", 0, zero=True)
    assert field_refused(check_seconds, "delay_seconds", -0.001, zero=True) == "delay_seconds"


def test_a_short_text_is_printable_and_short(subtests: pytest.Subtests) -> None:
    for value in ["", "x" * 201, "a\nb", "\x00", "\ud800", 5, b"a", ["a"]]:
        with subtests.test(value=value):
            for good in (None, "a", "Zoë Ω 你好", "x" * 200):
                check_short("user_id", good)
            assert field_refused(check_short, "user_id", value) == "user_id"


def test_capabilities_are_a_list_of_up_to_sixteen_names(subtests: pytest.Subtests) -> None:
    for value in ["gpu", 5, None, ["a,b"], [5], [f"c{i}" for i in range(17)]]:
        with subtests.test(value=value):
            check_capabilities(())
            check_capabilities({f"c{i}" for i in range(16)})
            assert field_refused(check_capabilities, value) == "required_capabilities"


# A task as it is submitted


def test_a_task_needs_no_more_than_a_type() -> None:
    check(NewTask(task_type="echo"))


def test_every_new_task_has_its_own_id_in_the_order_of_creation() -> None:
    ids = [NewTask(task_type="echo").task_id for _ in range(100)]
    assert sorted(set(ids)) == ids


WRONG: dict[str, Any] = {
    "task_type": "a b",
    "parameters": [1],
    "priority": "urgent",
    "priority_asked": "no",
    "user_id": "",
    "tenant": 5,
    "by_tenant": "yes",
    "weight": 0,
    "required_capabilities": "gpu",
    "limits": ["gpu"],
    "concurrency_group": "",
    "concurrency_limit": 0,
    "duration": "\n",
    "timeout_seconds": 0,
    "max_retries": 1001,
    "max_wait_seconds": math.nan,
    "deadline_seconds": 0,
    "delay_seconds": -1,
    "run_at": LATEST + 1,
    "idempotency_key": "",
    "trace_id": "\ud800",
    "traceparent": f"00-{'0' * 32}-{'1' * 16}-01",
    "size_hint": "\ud800",
    "job_id": b"x",
    "task_id": "1",
}


def test_there_is_a_wrong_value_for_every_field() -> None:
    assert WRONG.keys() == set(NewTask.__struct_fields__)


def test_every_field_is_checked_by_its_name(subtests: pytest.Subtests) -> None:
    for field in WRONG:
        with subtests.test(field=field):
            assert field_refused(check, NewTask(**{"task_type": "echo", field: WRONG[field]})) == field


def test_a_group_named_by_its_type_must_be_a_name_too() -> None:
    check(NewTask(task_type="echo", concurrency_limit=1))


def test_a_group_that_is_also_a_limit_counts_once() -> None:
    limits = {f"l{i}": 1 for i in range(8)}
    check(NewTask(task_type="echo", limits=limits, concurrency_group="l3"))
    assert (
        field_refused(check, NewTask(task_type="echo", limits=limits, concurrency_group="more")) == "limits"
    )


def test_a_time_and_a_delay_together_are_refused() -> None:
    assert field_refused(check, NewTask(task_type="echo", run_at=5, delay_seconds=0)) == "run_at"


# A task as the store knows it

RECORD = {
    "type": "echo",
    "state": "queued",
    "priority": "2",
    "created": "5",
    "timeout": "900000",
    "max_retries": "2",
}


def test_a_record_with_the_least_is_a_task_with_defaults() -> None:
    task = Task.from_record("t", RECORD)
    assert (task.status, task.priority, task.effective_priority) == (State.QUEUED, Priority.LOW, Priority.LOW)
    assert (task.parameters, task.limits, task.required_capabilities) == ({}, {}, ())
    assert (task.fence, task.attempt, task.run_at, task.result, task.error) == (0, 1, None, None, None)


def test_a_full_record_is_read_field_by_field() -> None:
    error = '{"code":"worker_lost","message":"gone","retriable":true}'
    more = {"place": "0p", "parameters": '{"a":[1]}', "capabilities": "big,gpu", "limits": "a=1,b=24"}
    numbers = {
        "retries": "1",
        "crashes": "2",
        "fence": "7",
        "started": "6",
        "deadline": "9",
        "lease_until": "8",
    }
    task = Task.from_record(
        "t",
        {**RECORD, **more, **numbers, "state": "executing", "result": "null", "error": error, "worker": "w"},
    )
    assert (task.effective_priority, task.parameters) == (Priority.HIGH, {"a": [1]})
    assert (task.required_capabilities, task.limits) == (("big", "gpu"), {"a": 1, "b": 24})
    assert (task.attempt, task.fence, task.assigned_worker_id) == (4, 7, "w")
    assert (task.started_at, task.lease_until, task.deadline) == (6, 8, 9)
    assert task.error == TaskError(code="worker_lost", message="gone", retriable=True)


def test_the_lease_of_an_ended_task_is_not_shown() -> None:
    ended = RECORD | {"state": "cancelled", "lease_until": "8"}
    assert Task.from_record("t", ended).lease_until is None
    assert Task.from_record("t", ended | {"stopping": "7"}).lease_until == 8  # its worker has not confirmed
