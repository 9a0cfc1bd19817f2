"""Lists, and --watch: printed once, or again and again until Ctrl-C."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from fairlead.cli.moments import read_moment
from fairlead.cli.options import Options, open_backend
from fairlead.cli.output import Output, compact, print_json, say
from fairlead.cli.table import Columns, Table, plain_text, print_tables, rendered, table_of
from fairlead.clock import monotonic
from fairlead.model.task_filter import PastFilter

if TYPE_CHECKING:
    from fairlead.backend import Backend

LOOK_AGAIN = 1.0  # seconds


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ListOptions(Options):
    """Of a command that prints a list."""

    watch: Annotated[
        bool, Parameter(help="Refresh it until Ctrl-C; in a pipe, print it after each change.", negative=())
    ] = False


LIST = ListOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Past:
    """What is listed of the past."""

    since: Annotated[
        str | None, Parameter(help="Only those accepted since then: 24h ago, or an RFC 3339 time.")
    ] = None
    until: Annotated[str | None, Parameter(help="Only those accepted until then.")] = None
    error: Annotated[str | None, Parameter(help="Only those with this text in their error.")] = None
    tenant: Annotated[str | None, Parameter(help="Only those of this tenant.")] = None
    needs: Annotated[str | None, Parameter(help="Only those that need this limit.")] = None

    @property
    def wanted(self) -> PastFilter:
        return {
            "since": read_moment("--since", self.since),
            "until": read_moment("--until", self.until),
            "error": self.error,
            "tenant": self.tenant,
            "needs": self.needs,
        }


ALL = Past()


@dataclass(frozen=True, slots=True)
class View:
    """What a command found: as JSON, and as tables for people."""

    answer: Any
    tables: Sequence[Table]
    note: str = ""  # for people as well, below the tables


Show = Callable[[View], None]
T = TypeVar("T")


async def gathered(
    read_page: Callable[[int, str], Awaitable[tuple[list[T], str]]], limit: int, cursor: str = ""
) -> tuple[list[T], str]:
    """Up to `limit` items, and the cursor behind them. A page may be short, or empty, and not the last."""
    items: list[T] = []
    while True:
        some, cursor = await read_page(limit - len(items), cursor)
        items += some
        if not cursor or len(items) >= limit:
            return items, cursor


async def show_all(
    options: ListOptions,
    name: str,
    read: "Callable[[Backend], Awaitable[Iterable[T]]]",
    as_answer: Callable[[T], Any],
    columns: Columns,
    least_used: Sequence[str] = (),
) -> None:
    """A list of everything that `read` finds, as JSON under this name."""
    async with open_backend(options) as backend:

        async def view() -> View:
            answers = [as_answer(one) for one in await read(backend)]
            return View({name: answers}, [table_of(answers, columns, least_used)])

        await show(options, view)


async def show(options: ListOptions, read: Callable[[], Awaitable[View]]) -> None:
    """Prints what `read` finds; with --watch as often as it may have changed."""
    if not options.watch:
        _print(options.output, await read())
        return
    begun = monotonic()
    view = await read()  # fails before anything is drawn if there is no server
    with _screen(options.output) as draw:
        while True:
            draw(view)
            # a long list is read less often: the server has other work
            await asyncio.sleep(max(LOOK_AGAIN, monotonic() - begun))
            begun = monotonic()
            view = await read()


def _print(output: Output, view: View) -> None:
    if output == "json":
        print_json(view.answer)
        return
    print_tables(view.tables)
    if view.note:
        say(view.note)


def _screen(output: Output) -> AbstractContextManager[Show]:
    if output == "table" and sys.stdout.isatty():
        return _redrawn()
    as_text = (lambda view: compact(view.answer)) if output == "json" else _block
    return contextlib.nullcontext(_when_changed(as_text))


@contextlib.contextmanager
def _redrawn() -> Iterator[Show]:
    """In place: each line is written over the one before, so nothing flickers."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        yield lambda view: live.update(
            Group(*rendered(view.tables, console.width), *([Text(view.note)] if view.note else [])),
            refresh=True,
        )


def _block(view: View) -> str:
    return plain_text(view.tables) + "\n"


def _when_changed(as_text: Callable[[View], str]) -> Show:
    before = ""

    def show_change(view: View) -> None:
        nonlocal before
        text = as_text(view)
        if text != before:
            print(text, flush=True)
        before = text

    return show_change
