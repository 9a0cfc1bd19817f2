"""Printing: tables and colour on a terminal, plain columns in a pipe, JSON when asked for."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

T = TypeVar("T")

Output = Literal["table", "json"]
#: The columns of a table: each has a field of the rows, or is made from a row.
Columns = Mapping[str, str | Callable[[dict[str, Any]], Any]]

MANY = 20  # things after which a person wants to see how far it is
EMPTY: tuple[Any, ...] = (None, "", [], {}, ())

#: Words that have a colour wherever they stand alone in a cell.
COLOURS = {
    "executing": "cyan",
    "completed": "green",
    "failed": "red",
    "dead_letter": "red",
    "cancelled": "yellow",
    "active": "green",
    "draining": "yellow",
    "dead": "red",
    "paused": "yellow",
    "revoked": "red",
    "expired": "yellow",
}


def print_answer(output: Output, answer: Any, sentence: str) -> None:
    """What was done: as JSON, or as a sentence."""
    if output == "json":
        print_json(answer)
    else:
        print(sentence)


def print_list(output: Output, answer: Any, rows: str, columns: Columns) -> None:
    """An answer whose field `rows` is a list: as JSON, or that list as a table."""
    if output == "json":
        print_json(answer)
    else:
        print_table(tuple(columns), [_cells(row, columns) for row in msgspec.to_builtins(answer)[rows]])


def print_end(output: Output, answer: Any, result: Callable[[], Any]) -> None:
    """What was waited for: as JSON, or its result alone, which raises if there is none."""
    if output == "json":
        print_json(answer)
    given = result()
    if output == "table":
        print_json(given)


def print_json(value: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_json_line(value: Any) -> None:
    """One value of many, as it comes: a reader must not wait for a full buffer."""
    print(compact(value), flush=True)


def compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def shown(value: Any) -> str:
    """In a cell: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else compact(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """What is empty is a dash."""
    cells = [["-" if cell in EMPTY else printable(shown(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, cells)
    else:
        _print_plain([columns, *cells])


def print_facts(facts: Mapping[str, Any]) -> None:
    """One thing and its fields, a line for each."""
    rows = [(name, printable(shown(value))) for name, value in facts.items()]
    if sys.stdout.isatty():
        _print_rich(None, rows)
    else:
        _print_plain(rows)


def say(message: str) -> None:
    """For the person, not for the program that reads the answer."""
    print(printable(message), file=sys.stderr, flush=True)


def agreed(question: str) -> bool:
    """Asks on a terminal. A script that calls it has decided before."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def each(things: Sequence[T], words: str) -> Iterable[T]:
    """The things one after the other, with a bar on a terminal when there are many."""
    if len(things) < MANY or not sys.stderr.isatty():
        return things
    from rich.console import Console
    from rich.progress import track

    return track(things, words, console=Console(stderr=True), transient=True)


def printable(text: str) -> str:
    """Without what would move the cursor or break the line: errors and outputs may hold anything."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _cells(row: dict[str, Any], columns: Columns) -> list[Any]:
    return [row.get(made) if isinstance(made, str) else made(row) for made in columns.values()]


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_rich(columns: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, show_header=columns is not None)
    for column in columns or ("", ""):
        table.add_column(column, overflow="fold")
    for row in rows:
        # Text, not markup: a value in brackets is a value, not a colour.
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    Console().print(table)
