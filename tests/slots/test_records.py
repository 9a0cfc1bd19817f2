"""What the object of a slot says, without a store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.slots.objects import MOST_BYTES
from fairlead.slots.record import (
    NEVER_USED,
    Record,
    extended,
    freed,
    read_record,
    state_of,
    taken,
    write_record,
)

NOW = 1_800_000_000_000
TEXT = st.text(max_size=50)


@given(
    worker=TEXT, task=st.none() | TEXT, ends=st.integers(0, 4_000_000_000_000), fence=st.integers(0, 10**15)
)
def test_a_record_is_read_as_it_was_written(worker: str, task: str | None, ends: int, fence: int) -> None:
    record = taken(Record(fence), worker, task, ends, "token")
    assert read_record(write_record(record)) == record
    assert record.expires_ms == ends
    assert record.fence == fence + 1
    assert read_record(write_record(freed(record, NOW))) == Record(fence + 1)


def test_the_layout_is_that_of_the_contract() -> None:
    record = taken(NEVER_USED, "worker-1", "task-1", NOW, "abc")
    assert write_record(record) == (
        b'{"fence":1,"task_id":"task-1","worker_id":"worker-1",'
        b'"expires_at":"2027-01-15T08:00:00.000Z","token":"abc"}'
    )


@pytest.mark.parametrize(
    ("after_ms", "state"), [(-1, "held"), (0, "held"), (5000, "held"), (5001, "expired")]
)
def test_a_slot_is_expired_for_every_clock_within_the_skew(after_ms: int, state: str) -> None:
    held = taken(NEVER_USED, "w", None, NOW, "t")
    assert state_of(held, NOW + after_ms, 5000) == state


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"fence":"1"}',
        b'{"fence":-1}',
        b'{"fence":1,"expires_at":"tomorrow"}',
        b'{"fence":1,"expires_at":"2026-01-01T00:00:00"}',
        b'{"fence":1}' + b" " * MOST_BYTES,
        b"\xff\xfe",
    ],
)
def test_what_fairlead_did_not_write_counts_as_held(content: bytes) -> None:
    record = read_record(content)
    assert record is None
    assert state_of(record, NOW, 0) == "damaged"
    assert freed(record, NOW).fence == NOW


def test_an_extension_never_shortens_a_lease() -> None:
    held = taken(NEVER_USED, "w", None, NOW, "t")
    assert extended(held, NOW + 1000).expires_ms == NOW + 1000
    assert extended(held, NOW - 1000).expires_ms == NOW
