"""`fairlead top`: refreshed in place on a terminal, with keys; printed once in a pipe."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import termios
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fairlead.cli.now import Now, shortened
from fairlead.cli.table import make_table
from fairlead.cli.top import Desk, drawn
from fairlead.clock import now_ms
from fairlead.model.estimate import EstimateQuality
from fairlead.model.forecast import Forecast, ForecastRun, LimitForecast, Outlook, Track
from fairlead.model.priority import Priority
from fairlead.model.stats import Depth, Stats
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell
from tests.faults.wire import wire
from tests.store.namespace import raw
from tests.waiting import wait_until
from tests.warm import WarmProcess

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
CLEARED = "\x1b[H"  # before each picture
ROWS, COLUMNS = 24, 160


def run(*, is_running: bool, start: int, end: int, who: str) -> ForecastRun:
    times: dict[str, Any] = {
        "start_p50": now_ms() + start,
        "start_p90": now_ms() + 2 * start,
        "end_p50": now_ms() + end,
        "end_p90": now_ms() + 2 * end,
    }
    return ForecastRun(is_running=is_running, priority=Priority.HIGH, task_id=who, task_type=who, **times)


def full(name: str = "gpu", waiting: int = 1, **given: Any) -> LimitForecast:
    runs = (
        run(is_running=True, start=0, end=90_000, who="held"),
        run(is_running=False, start=90_000, end=95_000, who="following"),
    )
    known: dict[str, Any] = {"limit": 1, "active": 1, "last_start_p50": now_ms() + 600_000}
    return LimitForecast(name=name, kind="slots", waiting=waiting, tracks=(Track(0, runs),), **known | given)


async def save(store: Store, *limits: LimitForecast) -> None:
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    head = {"head": {"at": now_ms(), "run": 0, "lengths": [], "corrections": [[[1000, 1000]]] * 3}}
    outlook = Outlook(limits={one.name: one for one in limits}, pressures={}, types={})
    assert await store.estimates.save_forecast("me", head, 60_000, outlook)


class Screen:
    """What a terminal shows, and its keyboard."""

    def __init__(self, terminal: int) -> None:
        self._terminal, self.raw = terminal, ""
        os.set_blocking(terminal, False)
        asyncio.get_running_loop().add_reader(terminal, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                self.raw += os.read(self._terminal, 1 << 16).decode(errors="replace")
            except OSError:  # the other side has closed it
                asyncio.get_running_loop().remove_reader(self._terminal)

    @property
    def shown(self) -> str:
        """The last picture that is complete."""
        pictures = self.raw.split(CLEARED)
        return ESCAPE.sub("", next((one for one in reversed(pictures) if "quit" in one or "_" in one), ""))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    async def until(self, text: str) -> None:
        await wait_until(lambda: text in self.shown)


@asynccontextmanager
async def top(shell: Shell, *options: str) -> AsyncIterator[tuple[Screen, WarmProcess]]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = shell.environment | {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    words = ["top", "--seconds", "0.2", *options]
    with os.fdopen(theirs, "r+b", buffering=0) as terminal:
        process = WarmProcess(words, environment, shell.home, terminal, terminal, stdin=terminal)
        before = termios.tcgetattr(terminal)
        try:
            yield Screen(ours), process
            assert termios.tcgetattr(terminal)[:4] == before[:4], "the terminal is as it was"
        finally:
            process.kill()
            asyncio.get_running_loop().remove_reader(ours)
            os.close(ours)


async def test_in_a_pipe_it_is_printed_once(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await live_store.workers.register("w", capacity=1)
    await live_store.submit(NewTask(task_type="draw", limits={"gpu": 1}))
    await save(live_store, full())
    plain = await shell.run("top")
    headline, queues, limits, workers = plain.out.split("\n\n")
    pace = "gpu is full, and 1 waits for it. The last starts in about 10 min."
    assert headline == f"1 task waits, 0 of 1 run. {pace}"
    assert queues.splitlines()[2].split()[:2] == ["medium", "1"]
    assert re.search(r"gpu +1 of 1 +1 +held +\d+ s to 3 min +following +\d+ s to 3 min +10 min", limits)
    assert workers.splitlines()[1].split()[0] == "w"
    assert ESCAPE.search(plain.out) is None
    answer = json.loads((await shell.run("top", "--output", "json")).out)
    assert answer["stats"]["queues"]["medium"]["depth"] == 1
    assert answer["forecast"]["limits"][0]["name"] == "gpu"


async def test_it_follows_the_queue_until_it_is_paused_and_ends_with_q(
    live_store: Store, shell: Shell
) -> None:
    await live_store.workers.register("w", capacity=1)
    async with top(shell, *shell.where) as (screen, process):
        await screen.until("0 tasks wait")
        await live_store.submit(NewTask(task_type="draw"))
        await screen.until("1 task waits")
        screen.type("p")
        await screen.until("paused")
        await live_store.submit(NewTask(task_type="draw"))
        seen = screen.raw.count(CLEARED)
        screen.type("x")  # it is drawn again
        await wait_until(lambda: screen.raw.count(CLEARED) > seen)
        assert "1 task waits" in screen.shown
        screen.type("p")
        await screen.until("2 tasks wait")
        screen.type("q")
        assert await process.wait() == 0
        await wait_until(lambda: "\x1b[?1049l" in screen.raw)


async def test_limits_and_workers_are_found_by_a_part_of_their_names(live_store: Store, shell: Shell) -> None:
    for name in ("gpu", "licence"):
        await live_store.limits.set(name, Slots(limit=1))
    await save(live_store, full("gpu"), full("licence"))
    async with top(shell, *shell.where) as (screen, process):
        await screen.until("gpu")
        assert "licence" in screen.shown
        screen.type("/licq")
        await screen.until("/licq_")
        screen.type("\x7f\r")
        await screen.until("only lic")
        assert "licence" in screen.shown
        assert "gpu" not in screen.shown
        screen.type("\x1b")
        await screen.until("gpu")
        screen.type("q")
        assert await process.wait() == 0


async def test_it_continues_when_a_server_that_was_away_is_back(
    live_store: Store, shell: Shell, tmp_path: Path
) -> None:
    async with (
        wire(shell.where[1], tmp_path) as (line, url),
        top(shell, "--engine", url, *shell.where[2:]) as (screen, process),
    ):
        await screen.until("0 tasks wait")
        line.down = True
        line.cut()
        await screen.until("trying again")
        assert "0 tasks wait" in screen.shown, "what was known stays"
        await live_store.submit(NewTask(task_type="draw"))
        line.down = False
        await screen.until("1 task waits")
        assert "trying again" not in screen.shown
        screen.type("q")
        assert await process.wait() == 0


async def test_without_a_server_it_ends_at_once(shell: Shell) -> None:
    gone = Shell(shell.home, ("--engine", "redis://127.0.0.1:1"))
    async with top(gone, *gone.where) as (screen, process):
        assert await process.wait() == 3
        await wait_until(lambda: "fairlead:" in screen.raw)
        assert "\x1b[?1049h" not in screen.raw


def stats(depth: int = 3, **given: Any) -> Stats:
    queues = {"high": Depth(depth, 5.0), "medium": Depth(0, 0), "low": Depth(0, 0)}
    nothing: dict[str, Any] = {"workers": [], "delayed": 0, "ended_last_minute": Counter(), "lost_events": 0}
    return Stats(queues=queues, **nothing | given)


@pytest.mark.parametrize(
    ("limits", "given", "expected"),
    [
        ([], {}, "3 tasks wait, 0 of 0 run. There is no worker: start one with `fairlead worker`."),
        ([], {"held": 2}, "3 tasks wait, 2 run."),
        (
            [{"paused": True}],
            {"held": 0},
            "3 tasks wait, 0 run. gpu is paused, and 1 waits for it.",
        ),
        ([{"active": 0, "waiting": 3}], {"held": 1, "delayed": 4}, "3 tasks wait, 1 runs, 4 delayed."),
        (
            [{"name": "fast", "last_start_p50": None}, {"name": "slow", "waiting": 2, "tenant": "acme"}],
            {"held": 0},
            "3 tasks wait, 0 run. slow of acme is full, and 2 wait for it. The last starts in about 10 min.",
        ),
    ],
)
def test_the_headline_names_what_decides_the_pace(
    limits: list[dict[str, Any]], given: dict[str, Any], expected: str
) -> None:
    forecast = Forecast(at=1, limits=tuple(full(**limit) for limit in limits))
    assert Now(stats(**given), forecast).headline() == expected


def test_below_it_is_what_has_ended_and_how_true_estimates_were() -> None:
    ended, quality = (
        Counter(completed=7, failed=1, dead_letter=1, cancelled=4),
        EstimateQuality(0.913, 1.0, 23),
    )
    now = Now(stats(ended_last_minute=ended, estimates=quality), Forecast(at=1))
    assert now.lately() == ("Last minute: 7 completed, 2 failed. Last hour: 91% of 23 waits within p90.")
    assert Now(stats(), Forecast(at=1)).lately() == ""


def test_what_does_not_fit_is_left_out_evenly() -> None:
    tables = [make_table(("a",), [[str(n)] for n in range(size)]) for size in (3, 50, 20)]
    assert [len(table.rows) for table in shortened(tables, 20)] == [3, 6, 5]
    assert shortened(tables, 200) == tables
    assert [len(table.rows) for table in shortened(tables, 1)] == [0, 0, 0]


@pytest.mark.parametrize("width", [30, 44, 80, 160])
@pytest.mark.parametrize("height", [9, 12, 20, 24, 60])
def test_the_keys_are_visible_whatever_the_size_of_the_terminal(width: int, height: int) -> None:
    limits = tuple(full(f"limit-of-a-long-name-{number}", waiting=3) for number in range(9))
    now, console = Now(stats(), Forecast(at=1, limits=limits)), Console(width=width, height=height)
    with console.capture() as capture:
        console.print(drawn(now, Desk(), console))
    lines = ESCAPE.sub("", capture.get()).splitlines()
    assert len(lines) <= height
    status = " ".join(lines[lines.index("", len(lines) - 4) :])
    assert all(key in status for key in ("q quit", "p pause", "/ find", "esc all"))
    left_out = re.search(r"(\d+) more rows", status)
    if width >= 80:  # otherwise a row is more than one line
        below = [below for line, below in pairwise(lines) if line.startswith(("priority", "limit  "))]
        assert all(line.startswith(("high", "limit-")) for line in below), "no header stands alone"
        shown = [line for line in lines[1:] if line.startswith(("limit-", "high", "medium", "low"))]
        assert len(shown) == 9 + 3 - (int(left_out[1]) if left_out else 0)
