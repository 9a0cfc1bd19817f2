"""Tables: plain columns in a pipe; on a terminal they have colours and ages, and fit its width."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.cli.output import printable, shown
from fairlead.clock import now_ms
from fairlead.times import age_text, is_time_text, read_time

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The columns of a list: each has a field of the rows, or is made from a row.
Columns = Mapping[str, str | Callable[[dict[str, Any]], Any]]

EMPTY: tuple[Any, ...] = (None, "", [], {}, ())
GAP = 2  # between two columns
#: Columns that may be cut short, down to this width; all others are shown whole or not at all.
PROSE = frozenset({"message", "task types", "capabilities", "scopes", "before", "after", "reason"})
LEAST_PROSE = 10

#: Words that have a colour wherever they stand alone in a cell.
COLOURS = {
    "executing": "cyan",
    "completed": "green",
    "failed": "red",
    "COMPLETED": "green",
    "RUNNING": "cyan",
    "FAILED": "red",
    "CANCELLED": "yellow",
    "dead_letter": "red",
    "cancelled": "yellow",
    "active": "green",
    "draining": "yellow",
    "dead": "red",
    "paused": "yellow",
    "revoked": "red",
    "expired": "yellow",
}


@dataclass(frozen=True, slots=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    least_used: Sequence[str] = ()  # columns that a narrow terminal leaves out, in this order


def make_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], least_used: Sequence[str] = ()
) -> Table:
    """What is empty is a dash."""
    cells = [["-" if cell in EMPTY else printable(shown(cell)) for cell in row] for row in rows]
    return Table(columns, cells, least_used)


def table_of(answers: Sequence[Any], columns: Columns, least_used: Sequence[str] = ()) -> Table:
    """A row for each answer."""
    rows = [
        [row.get(made) if isinstance(made, str) else made(row) for made in columns.values()]
        for row in msgspec.to_builtins(answers)
    ]
    return make_table(tuple(columns), rows, least_used)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], least_used: Sequence[str] = ()
) -> None:
    print_tables([make_table(columns, rows, least_used)])


def print_tables(tables: Sequence[Table]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(*rendered(tables, console.width), sep="\n")
    else:
        print(plain_text(tables))


def print_facts(facts: Mapping[str, Any]) -> None:
    """One thing and its fields, a line for each."""
    rows = [(name, printable(shown(value))) for name, value in facts.items()]
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(rich_grid(None, [(name, with_age(value)) for name, value in rows]))
    else:
        print(plain_lines(rows))


def plain_text(tables: Sequence[Table]) -> str:
    return "\n\n".join(plain_lines([table.columns, *table.rows]) for table in tables)


def plain_lines(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        (" " * GAP).join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def rendered(tables: Sequence[Table], width: int) -> "list[RenderableType]":
    """For a terminal of this width: the tables, and the names of the columns that were left out."""
    from rich.text import Text

    now = now_ms()
    lines: list[RenderableType] = []
    for table in tables:
        rows = [[_aged(cell, now) for cell in row] for row in table.rows]
        fits, left_out = fitted(Table(table.columns, rows, table.least_used), width)
        if lines:
            lines.append(Text(""))
        lines.append(rich_grid(fits.columns, fits.rows))
        if left_out:
            lines.append(Text(f"(no room for: {', '.join(left_out)})", style="dim"))
    return lines


def fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """What fits into the width, and the names of the columns that were left out for that.

    What is still too wide is for the terminal to wrap.
    """
    from rich.cells import cell_len

    cells = {name: column for name, *column in zip(table.columns, *table.rows, strict=True)}
    widths = {name: max(map(cell_len, (name, *column))) for name, column in cells.items()}
    least = {
        name: min(size, max(LEAST_PROSE, len(name))) if name in PROSE else size
        for name, size in widths.items()
    }

    def room_beside(left_out: Sequence[str]) -> int:
        return width + GAP - sum(least[name] + GAP for name in cells if name not in left_out)

    left_out: list[str] = []
    for name in table.least_used:
        if room_beside(left_out) < 0:
            left_out.append(name)
    for name in reversed(left_out):  # a narrow one may fit after all when a wide one is left out as well
        without = [other for other in left_out if other != name]
        left_out = without if room_beside(without) >= 0 else left_out
    room = room_beside(left_out)
    columns = {name: column for name, column in cells.items() if name not in left_out}
    for name in columns:
        size = min(widths[name], least[name] + max(room, 0))
        room -= size - least[name]
        columns[name] = [_cut(cell, size) for cell in columns[name]]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return Table([*columns], rows), left_out


def rich_grid(columns: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> "RenderableType":
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, header_style="bold", pad_edge=False, show_header=columns is not None)
    for column in columns or ("", ""):
        grid.add_column(column, overflow="fold")
    for row in rows:
        # Text, not markup: a value in brackets is a value, not a colour.
        grid.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    return grid


def with_age(text: str) -> str:
    """A time, and beside it how long ago that was."""
    if not is_time_text(text):
        return text
    age = _aged(text, now_ms())
    return f"{text} ({age if age.startswith('in ') else f'{age} ago'})"


def _aged(cell: str, now: int) -> str:
    return age_text(now - read_time("time", cell)) if is_time_text(cell) else cell


def _cut(cell: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return cell if cell_len(cell) <= width else set_cell_size(cell, width - 1).rstrip(" ,") + "…"
