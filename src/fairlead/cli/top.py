"""`fairlead top`: the queue at a glance, refreshed in place, with a few keys; in a pipe printed once."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from fairlead.cli.now import Now, shortened
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_json, printable
from fairlead.cli.table import plain_text, rendered
from fairlead.clock import monotonic
from fairlead.errors import EngineFailed, NamespaceNotOpen, StoreUnavailable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from fairlead.backend import Backend

AHEAD_SECONDS = 3_600.0  # starts later than this are not named
KEYS = "q quit   p pause   / find   esc all"
GONE = (StoreUnavailable, EngineFailed, NamespaceNotOpen)  # it may come back
INTERRUPT, ESCAPE, ENTER, BACKSPACE = "\x03", "\x1b", ("\r", "\n"), ("\x7f", "\b")
MOST_TYPED = 200


async def top(
    *,
    seconds: Annotated[
        float, Parameter(help="Refresh it as often.", validator=validators.Number(gte=0.2, lte=3_600))
    ] = 2.0,
    options: Options = DEFAULTS,
) -> None:
    """Show what waits, each limit with its holders and who is next, and the workers; q ends it."""
    async with open_backend(options) as backend:
        now = await _read(backend)  # fails before anything is drawn if there is no server
        if options.output == "json":
            print_json(now.answer)
        elif sys.stdout.isatty() and sys.stdin.isatty():
            await _live(backend, now, seconds)
        else:
            above = map(printable, filter(None, (now.headline(), now.lately())))
            print("\n".join(above), plain_text(now.tables()), sep="\n\n")


async def _read(backend: "Backend") -> Now:
    return Now(await backend.stats(), await backend.forecast(seconds=AHEAD_SECONDS))


@dataclass
class Desk:
    """What the user has chosen, and the state of what is shown."""

    paused: bool = False
    wanted: str = ""
    is_typing: bool = False
    ends: bool = False
    lost_at: float | None = None  #: since when the server does not answer

    def press(self, key: str) -> None:
        if key == INTERRUPT:
            self.ends = True
        elif self.is_typing:
            self._type(key)
        elif key == "q":
            self.ends = True
        elif key == "p":
            self.paused = not self.paused
        elif key == "/":
            self.is_typing, self.wanted = True, ""
        elif key == ESCAPE:
            self.wanted = ""

    def _type(self, key: str) -> None:
        if key == ESCAPE:
            self.is_typing, self.wanted = False, ""
        elif key in ENTER:
            self.is_typing = False
        elif key in BACKSPACE:
            self.wanted = self.wanted[:-1]
        elif key.isprintable() and len(self.wanted) < MOST_TYPED:
            self.wanted += key

    def status(self, left_out: int) -> str:
        if self.is_typing:
            return f"/{self.wanted}_"
        words = [KEYS]
        if self.lost_at is not None:
            words.append(f"no answer for {monotonic() - self.lost_at:.0f} s, trying again")
        if self.paused:
            words.append("paused")
        if self.wanted:
            words.append(f"only {self.wanted}")
        if left_out:
            words.append(f"{left_out} more rows do not fit")
        return "   ".join(words)


async def _live(backend: "Backend", now: Now, seconds: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console, desk, changed = Console(), Desk(), asyncio.Event()

    def press(keys: str) -> None:
        for key in keys:
            desk.press(key)
        changed.set()

    with _keys(press), Live(console=console, auto_refresh=False, screen=True) as live:
        read_at = monotonic()
        while not desk.ends:
            live.update(drawn(now, desk, console), refresh=True)
            changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), max(0.0, read_at + seconds - monotonic()))
            if desk.ends or monotonic() < read_at + seconds:
                continue
            read_at = monotonic()
            if not desk.paused:
                now = await _read_again(backend, now, desk)


async def _read_again(backend: "Backend", before: Now, desk: Desk) -> Now:
    """What was seen before stays while the server is away."""
    try:
        now = await _read(backend)
    except GONE:
        desk.lost_at = desk.lost_at or monotonic()
        return before
    desk.lost_at = None
    return now


def drawn(now: Now, desk: Desk, console: "Console") -> "RenderableType":
    """As many rows as fit: on a narrow terminal lines are wrapped, and below a table is what it lacks."""
    from rich.console import Group
    from rich.text import Text

    above = [Text(printable(now.headline()), style="bold")]
    if lately := now.lately():
        above.append(Text(printable(lately), style="dim"))
    tables, room = now.tables(desk.wanted), console.height - 4  # the headline, the status, and lines between
    every = sum(len(table.rows) for table in tables)
    while True:
        cut = shortened(tables, room)
        words = printable(desk.status(every - sum(len(table.rows) for table in cut)))
        status = Text(words, style="yellow" if desk.lost_at is not None else "dim")
        picture = Group(*above, Text(""), *rendered(cut, console.width), Text(""), status)
        if not all(table.rows for table in cut):  # a header alone says nothing: without the last table
            tables, room = tables[:-1], console.height - 4
        elif tables and len(console.render_lines(picture)) > console.height:
            room -= 1
        else:
            return picture


@contextlib.contextmanager
def _keys(press: Callable[[str], None]) -> Iterator[None]:
    """Each key at once, and not shown. Ctrl-C still ends the command."""
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    loop.add_reader(terminal, lambda: press(_read_keys(terminal)))
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read_keys(terminal: int) -> str:
    """A terminal that is closed quits."""
    with contextlib.suppress(OSError):
        return os.read(terminal, 64).decode(errors="replace") or INTERRUPT
    return INTERRUPT
