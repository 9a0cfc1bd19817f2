"""Log lines are events with facts, on one line each; what happens too often is written now and then."""

import json
import logging
import re
import threading
import traceback
from collections.abc import Callable
from datetime import datetime
from types import TracebackType

import pytest

from fairlead.clock import monotonic
from fairlead.log import events
from fairlead.log.events import EventLog, LimitedLog
from fairlead.log.secrets import redacted
from fairlead.log.setup import JsonFormat, TextFormat
from fairlead.log.tracebacks import traceback_of
from fairlead.worker.threads import Threads
from tests.pages import Page, all_blocks
from tests.unit.now import Now


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now()
    monkeypatch.setattr(events, "monotonic", now)
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
    seldom = LimitedLog("fairlead.test", seconds=10)
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
    seldom = LimitedLog("fairlead.test")
    for kind in ("accept", "store", "accept", "store"):
        seldom.error("no_files", kind=kind, when=kind)
    assert lines(caplog) == ["no_files when=accept", "no_files when=store"]


def test_records_below_the_level_are_not_counted(
    log: EventLog, caplog: pytest.LogCaptureFixture, now: Now
) -> None:
    seldom = LimitedLog("fairlead.test")
    caplog.set_level(logging.ERROR, "fairlead.test")
    seldom.info("seen")
    caplog.set_level(logging.INFO, "fairlead.test")
    seldom.info("seen")
    assert lines(caplog) == ["seen"]


def test_only_the_latest_kinds_are_remembered(
    log: EventLog, caplog: pytest.LogCaptureFixture, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_KINDS", 2)
    seldom = LimitedLog("fairlead.test")
    for kind in ("a", "b", "c", "c", "a"):
        seldom.info("seen", kind=kind, of=kind)
    assert lines(caplog) == ["seen of=a", "seen of=b", "seen of=c", "seen of=a"]


def test_threads_share_the_count(log: EventLog, caplog: pytest.LogCaptureFixture, now: Now) -> None:
    seldom = LimitedLog("fairlead.test")

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


def raised(problem: Exception) -> Exception:
    try:
        raise problem
    except Exception as known:
        return known


def formatted(format: logging.Formatter, write: Callable[[], None], caplog: pytest.LogCaptureFixture) -> str:
    write()
    return format.format(caplog.records[-1])


def test_text_begins_with_a_time_and_further_lines_are_indented(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    problem = raised(ValueError("no\n2026-01-01T00:00:00.000Z ERROR forged"))
    line = formatted(
        TextFormat(), lambda: log.error("task_failed", task="t", traceback=traceback_of(problem)), caplog
    )
    first, *others = line.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ERROR task_failed task=t", first)
    assert others[0] == "    Traceback (most recent call last):"
    assert all(other.startswith("    ") for other in others)


def test_json_is_one_object_on_one_line_with_the_facts_of_the_event(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    problem = raised(ValueError("no"))
    line = formatted(
        JsonFormat(),
        lambda: log.error("task_failed", task="t", fence=7, level="x", traceback=traceback_of(problem)),
        caplog,
    )
    known = json.loads(line)
    assert "\n" not in line
    assert known["traceback"].startswith("Traceback") and known["traceback"].endswith("ValueError: no")
    assert {name: known[name] for name in ("level", "logger", "event", "task", "fence")} == {
        "level": "error",
        "logger": "fairlead.test",
        "event": "task_failed",
        "task": "t",
        "fence": 7,
    }


@pytest.mark.parametrize("format", [TextFormat(), JsonFormat()], ids=["text", "json"])
def test_lines_of_other_libraries_are_formatted_too(format: logging.Formatter) -> None:
    problem = raised(ValueError("no"))
    # not logged: the user of this test could not write it
    record = logging.LogRecord(
        "some.library",
        logging.ERROR,
        __file__,
        1,
        "broken \x1b[31m \ud800 %s",
        (7,),
        (type(problem), problem, problem.__traceback__),
    )
    line = format.format(record)
    assert "some.library" in line and "broken" in line and "ValueError: no" in line
    assert "\x1b" not in line
    line.encode()


SECRETS = (
    "redis://:{}@db:6379/0",
    "redis://user:{}@db:6379/0",
    "redis://user:with@{}@db:6379/0",
    "http://ann:{}@host/path",
    "https://host/path?sig=1&t={}",
    "flk_abcdefgh_{}",
    "Authorization: Bearer {}",
    "{{'authorization': 'Bearer {}'}}",
    "Basic {}",
    '{{"api_key": "{}"}}',
    "(b'x-api-key', b'{}')",
    "(b'Set-Cookie', b'session={}; Path=/')",
    "password={}",
    "client = Client(api_key='{}')",
    "OPENAI_API_KEY={}",
    'x-service-token="{}"',
)


@pytest.mark.parametrize("text", SECRETS)
def test_credentials_are_not_logged(log: EventLog, caplog: pytest.LogCaptureFixture, text: str) -> None:
    secret = "s3cr3tS3cr3tS3cr3t"
    written = text.format(secret)
    assert secret in written
    log.error("failed", problem=written, traceback=traceback_of(raised(ValueError(written))))
    assert secret not in caplog.records[-1].getMessage()
    logging.getLogger("some.library").error("failed %s", written)
    for format in (TextFormat(), JsonFormat()):
        for record in caplog.records:
            assert secret not in format.format(record)


def test_text_that_is_not_secret_is_kept(subtests: pytest.Subtests) -> None:
    for text in [
        "lease_lost worker=a-1 task=0190 fence=7",
        "http://127.0.0.1:8000/api/v1/tasks",
        'File "/app/tokens.py", line 3, in token',
        "KeyError: 'password'",
        "is this a token?",
        "mail ann@example.org",
    ]:
        with subtests.test(text=text):
            assert redacted(text) == text


@pytest.mark.long
def test_credentials_are_looked_for_in_a_time_that_grows_with_the_text_alone(
    subtests: pytest.Subtests,
) -> None:
    """Clients choose what errors of their tasks quote; to look at each pair of places would take minutes."""
    for piece in [
        "a-",
        "a://",
        "://",
        "@",
        "://@",
        "token",
        "token=",
        "token='",
        "token='\"",
        "Bearer ",
        "flk_a_",
        " ",
        "\\",
    ]:
        with subtests.test(piece=piece):
            text = piece * (1_000_000 // len(piece))
            began = monotonic()
            redacted(text)
            assert monotonic() - began < 20


async def test_a_traceback_begins_outside_of_fairlead_and_shows_no_values() -> None:
    def handler(prompt: str) -> None:
        raise ValueError("no")

    prompt = "a-prompt"
    call = await Threads().start(lambda: handler(prompt))
    with pytest.raises(ValueError) as raised:
        await call.result
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert any(frame.filename.endswith("fairlead/worker/threads.py") for frame in frames)
    raised.value.__traceback__ = of_thread(raised.value.__traceback__)
    text = traceback_of(raised.value)
    assert text.splitlines()[0] == "Traceback (most recent call last):"
    assert "in handler" in text and text.endswith("ValueError: no")
    assert "a-prompt" not in text and "threads.py" not in text


def of_thread(frames: TracebackType | None) -> TracebackType | None:
    """From the frame that ran in the thread: earlier frames belong to this test."""
    while frames and not frames.tb_frame.f_code.co_filename.endswith("fairlead/worker/threads.py"):
        frames = frames.tb_next
    return frames


def test_a_traceback_is_bounded_and_keeps_its_beginning_and_its_end() -> None:
    def deep(n: int) -> None:
        if not n:
            raise ValueError("é" * 50_000 + "the end")
        deep(n - 1)

    with pytest.raises(ValueError) as raised:
        deep(200)
    text = traceback_of(raised.value)
    assert len(text.encode()) <= 8192
    assert text.startswith("Traceback") and text.endswith("the end") and "bytes left out" in text


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("never")


def test_an_error_that_cannot_be_printed_has_a_traceback_all_the_same() -> None:
    assert "Unprintable" in traceback_of(raised(Unprintable()))
    assert "ValueError" in traceback_of(ValueError("not raised"))


def test_the_lines_on_the_page_about_operating_are_such_lines(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is written again, from the facts of the line in JSON or from those of the traceback."""
    plain, as_json, failed = [
        block.text.rstrip()
        for block in all_blocks(Page("docs/operating.md").text)
        if block.kind in ("text", "json")
    ]
    known = json.loads(as_json)
    time = datetime.fromisoformat(known["time"]).timestamp()
    facts = {name: fact for name, fact in known.items() if name not in ("time", "level", "logger", "event")}
    log.warning(known["event"], **facts)
    first, *traceback = failed.splitlines()
    others = dict(word.split("=") for word in first.split()[3:])
    log.warning("task_failed", **others, traceback="\n".join(line[4:] for line in traceback))
    lost, ended = caplog.records
    lost.created = ended.created = time
    lost.name = known["logger"]
    assert (TextFormat().format(lost), JsonFormat().format(lost)) == (plain, as_json)
    assert TextFormat().format(ended) == failed
