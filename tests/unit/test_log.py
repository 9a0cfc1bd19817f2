"""Log lines are events with facts, on one line each; what happens too often is written now and then."""

import logging
import threading

import pytest

from fairlead.log import limited
from fairlead.log.events import EventLog
from fairlead.log.limited import LimitedLog


class Now:
    def __init__(self) -> None:
        self.seconds = 1_234.567

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now()
    monkeypatch.setattr(limited, "monotonic", now)
    return now


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> EventLog:
    caplog.set_level(logging.INFO, "fairlead.test")
    return EventLog("fairlead.test")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_an_event_is_a_line_with_its_facts(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    log.warning("lease_lost", task="t1", fence=7, job=None, seconds=0.5)
    assert lines(caplog) == ["lease_lost task=t1 fence=7 seconds=0.5"]
    assert caplog.records[0].levelname == "WARNING"
    assert caplog.records[0].funcName == "test_an_event_is_a_line_with_its_facts"


@pytest.mark.parametrize("value", ["a b", "a\nb", 'a"b', "a=b", "\x1b[31m", "", "a\\b"])
def test_a_value_cannot_end_the_line_or_pretend_to_be_a_fact(
    log: EventLog, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    log.info("task_failed", type=value)
    (line,) = lines(caplog)
    assert line.startswith('task_failed type="') and line.endswith('"')
    assert not any(ord(letter) < 32 for letter in line)


def test_a_value_is_bounded(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    log.info("task_failed", type="x" * 10_000)
    assert len(lines(caplog)[0]) < 1_100


def test_a_traceback_follows_its_line(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    log.error("task_failed", task="t1", traceback="Traceback\n  here\nValueError: no\n")
    assert lines(caplog) == ["task_failed task=t1\nTraceback\n  here\nValueError: no"]


def test_one_line_of_a_kind_and_the_next_says_how_many_were_suppressed(
    log: EventLog, caplog: pytest.LogCaptureFixture, now: Now
) -> None:
    seldom = LimitedLog(log, seconds=10)
    for _ in range(500):
        seldom.warning("no_files", limit=1024)
    seldom.warning("bad_frame")
    now.seconds += 9.9
    seldom.warning("no_files", limit=1024)
    now.seconds += 0.2
    seldom.warning("no_files", limit=1024)
    now.seconds += 10
    seldom.warning("no_files", limit=1024)
    assert lines(caplog) == [
        "no_files limit=1024",
        "bad_frame",
        "no_files limit=1024 suppressed=500",
        "no_files limit=1024",
    ]


def test_kinds_of_one_event_are_counted_apart(
    log: EventLog, caplog: pytest.LogCaptureFixture, now: Now
) -> None:
    seldom = LimitedLog(log)
    for kind in ("accept", "store", "accept", "store"):
        seldom.error("no_files", kind=kind, when=kind)
    assert lines(caplog) == ["no_files when=accept", "no_files when=store"]


def test_what_nobody_reads_is_not_counted(log: EventLog, caplog: pytest.LogCaptureFixture, now: Now) -> None:
    seldom = LimitedLog(log)
    caplog.set_level(logging.ERROR, "fairlead.test")
    seldom.info("seen")
    caplog.set_level(logging.INFO, "fairlead.test")
    seldom.info("seen")
    assert lines(caplog) == ["seen"]


def test_only_the_latest_kinds_are_remembered(
    log: EventLog, caplog: pytest.LogCaptureFixture, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "MOST_KINDS", 2)
    seldom = LimitedLog(log)
    for kind in ("a", "b", "c", "c", "a"):
        seldom.info("seen", kind=kind, of=kind)
    assert lines(caplog) == ["seen of=a", "seen of=b", "seen of=c", "seen of=a"]


def test_threads_share_the_count(log: EventLog, caplog: pytest.LogCaptureFixture, now: Now) -> None:
    seldom = LimitedLog(log)

    def say() -> None:
        for _ in range(1000):
            seldom.info("seen")

    threads = [threading.Thread(target=say) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now.seconds += 10
    seldom.info("seen")
    assert lines(caplog) == ["seen", "seen suppressed=7999"]
