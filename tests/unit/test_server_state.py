"""The state of a server, as reasons why it should get no work."""

import pytest
from redis.exceptions import ReadOnlyError, ResponseError

from fairlead.errors import StoreUnavailable
from fairlead.store.address import parse_info
from fairlead.store.engine.state import (
    DISK,
    EVICTS,
    REPLICA,
    disk_failure,
    problem_behind,
    problems_of,
    was_truncated,
)

WELL = {
    "maxmemory_policy": "noeviction",
    "role": "master",
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
}
START = "7:M 16 Nov 2026 14:43:14.838 * Server initialized\n"
END = "7:M 16 Nov 2026 14:43:14.925 # Can't recover from AOF write error. Exiting...\n"
FULL = "7:M 16 Nov 2026 14:43:14.925 # Error writing to the AOF file: No space left on device\n"
SHORT = "7:M 16 Nov 2026 14:43:14.925 # Short write while writing to the AOF file: (nwritten=2, expected=4)\n"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maxmemory_policy": "volatile-lru"}, EVICTS),
        ({"role": "slave"}, REPLICA),
        ({"aof_last_write_status": "err"}, DISK),
        ({"aof_enabled": "0", "rdb_last_bgsave_status": "err"}, DISK),
    ],
)
def test_each_state_that_endangers_work_is_a_reason(changes: dict[str, str], reason: str) -> None:
    assert list(problems_of(WELL | changes)) == [reason]


def test_a_healthy_or_unknown_state_is_no_reason(subtests: pytest.Subtests) -> None:
    for info in [
        WELL,
        {},
        {"redis_version": "7.0.15"},
        # the append-only file has everything: a snapshot that failed loses nothing
        WELL | {"rdb_last_bgsave_status": "err"},
        WELL | {"aof_enabled": "0", "aof_last_write_status": "err"},
    ]:
        with subtests.test(info=info):
            assert problems_of(info) == {}


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), DISK),
        (ReadOnlyError("You can't write against a read only replica.", status_code="READONLY"), REPLICA),
    ],
)
def test_a_refused_act_is_a_reason_too(cause: Exception, reason: str) -> None:
    refusal = StoreUnavailable()
    refusal.__cause__ = cause
    assert list(problem_behind(refusal)) == [reason]


def test_a_store_that_did_not_answer_is_no_reason() -> None:
    assert problem_behind(StoreUnavailable()) == {}


def test_info_is_read_line_by_line() -> None:
    assert parse_info(b"# Memory\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\n\r\n") == {
        "used_memory": "1",
        "maxmemory_policy": "noeviction",
    }


def test_only_the_end_of_the_latest_run_counts(subtests: pytest.Subtests) -> None:
    for log, failure in [
        (START + FULL + END, "Error writing to the AOF file: No space left on device"),
        (START + SHORT + END, "Short write while writing to the AOF file: (nwritten=2, expected=4)"),
        (START + FULL + END + START, None),  # it runs again
        (START + SHORT, None),  # it continued
        (START, None),
        ("", None),
    ]:
        with subtests.test(log=log, failure=failure):
            assert disk_failure(log) == failure


def test_a_truncated_file_is_seen_in_the_log() -> None:
    assert was_truncated(
        START + "7:M # !!! Truncating the AOF appendonly.aof.1.incr.aof at offset 257695 !!!\n"
    )
    assert not was_truncated(START + FULL + END)
