"""Whatever the store holds of a task or a job, its row gives back the same."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlead.history.rows import fields_of, fields_of_job, job_row, task_row
from fairlead.model.states import State

NUMBERS = st.integers(1, 1 << 49)
TEXTS = st.text(max_size=20)
FACTS = st.fixed_dictionaries(
    {"made": NUMBERS, "type": st.just("echo"), "priority": st.integers(0, 4), "created": NUMBERS},
    optional={
        "user_id": TEXTS,
        "tenant": TEXTS,
        "limits": st.sampled_from(["gpu=1", "acme/gpu=2,b=1"]),
        "estimate": st.lists(NUMBERS, min_size=3, max_size=6),
        "unknown": st.binary(max_size=5) | NUMBERS,
    },
)
CONTENT = st.text(max_size=50).map(str.encode) | st.binary(max_size=20)  # a hand may have edited it
ERRORS = st.builds(
    lambda code, message: msgspec.json.encode({"code": code, "message": message, "retriable": True}),
    TEXTS,
    TEXTS,
)
OTHERS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("parameters", "result", "traceback"), CONTENT),
    **dict.fromkeys(
        ("started", "finished", "fence", "retries", "told", "waited"), NUMBERS.map(lambda n: b"%d" % n)
    ),
    "error": ERRORS,
    "chosen": TEXTS.map(str.encode),
}


def named(fields: dict[str, Any]) -> dict[bytes, bytes]:
    return {name.encode(): value for name, value in fields.items()}


@given(
    FACTS.map(msgspec.msgpack.encode),
    st.sampled_from(State),
    st.fixed_dictionaries({}, optional=OTHERS).map(named),
)
def test_a_task(facts: bytes, state: State, others: dict[bytes, bytes]) -> None:
    fields = {b"facts": facts, b"state": state.value.encode(), **others}
    row = task_row(3, "id", fields, 7)
    assert row
    assert fields_of(row) == fields
    assert not [value for value in row if isinstance(value, str) and "\0" in value]  # PostgreSQL refuses it


@given(st.dictionaries(st.sampled_from(["plan", "step:0", "result:0", "tenant"]), CONTENT).map(named), ERRORS)
def test_a_job(others: dict[bytes, bytes], error: bytes) -> None:
    plain = {"made": b"4", "feature": b"story", "status": b"PENDING", "effective": b"2", "created": b"9"}
    fields = {**others, **named(plain), b"error": error, b"tenant": b"acme"}
    row = job_row(3, "id", fields, 7)
    assert row
    assert fields_of_job(row) == fields


def test_a_task_of_a_version_that_kept_each_fact_in_a_field() -> None:
    fields = {b"state": b"queued", b"made": b"5", b"type": b"echo", b"priority": b"2", b"created": b"1"}
    row = task_row(1, "id", fields, 7)
    assert row
    assert fields_of(row) == fields


def test_without_its_number_there_is_no_row() -> None:
    assert task_row(1, "id", {}, 7) is None
    assert (
        task_row(1, "id", {b"state": b"queued", b"facts": msgspec.msgpack.encode({"type": "echo"})}, 7)
        is None
    )
    assert job_row(1, "id", {}, 7) is None
