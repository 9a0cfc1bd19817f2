"""`fairlead history export`: rows of the history as CSV, JSON lines or Parquet, however many they are."""

import asyncio
import csv
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Literal

import msgspec
from cyclopts import Parameter

from fairlead.cli.history_options import opened_history
from fairlead.cli.moments import read_moment
from fairlead.cli.options import DEFAULTS, StoreOptions
from fairlead.errors import InvalidInput, InvalidSettings
from fairlead.history.exporting import COLUMNS, Cell, Column, Kind, exported

Format = Literal["csv", "jsonl", "parquet"]
Rows = AsyncIterator[list[Cell]]

AT_ONCE = 1_024  # rows that are converted together
GROUP = 50_000  # rows of a group in a Parquet file, which is in memory while it is written


async def export(
    file: Path | None = None,
    /,
    *,
    rows: Annotated[Kind, Parameter(help="What to export.")] = "tasks",
    since: Annotated[str, Parameter(help="The earliest: 24h, 30d, or a time.")] = "24h",
    until: Annotated[str | None, Parameter(help="The latest: 1h, or a time; else now.")] = None,
    format: Annotated[Format | None, Parameter(help="Else by the name of the file, or csv.")] = None,
    options: StoreOptions = DEFAULTS,
) -> None:
    """Export tasks, jobs or events that were submitted or happened in this time, the oldest first.

    To FILE, or to the standard output. Parquet needs a file, and a package: pip install 'fairlead[parquet]'.
    """
    form = format or _form_of(file)
    if form == "parquet" and file is None:
        raise InvalidInput("--format", "Parquet cannot be written to the standard output: name a file")
    began, ended = read_moment("--since", since), read_moment("--until", until)
    settings, _ = options.read_settings()
    async with opened_history(settings) as history:
        found = exported(history, rows, began or 0, ended)
        try:
            await write(form, file, COLUMNS[rows], found)
        except OSError as problem:
            if file is None:
                raise
            raise InvalidInput("FILE", f"cannot write {file}: {problem.strerror}") from None


def _form_of(file: Path | None) -> Format:
    endings: dict[str, Format] = {".jsonl": "jsonl", ".parquet": "parquet"}
    return endings.get(file.suffix, "csv") if file else "csv"


async def write(form: Format, file: Path | None, columns: Sequence[Column], rows: Rows) -> None:
    if form == "parquet":
        assert file
        await _write_parquet(file, columns, rows)
    elif file is None:
        await WRITERS[form](sys.stdout.buffer, columns, rows)
    else:
        with file.open("wb") as opened:
            await WRITERS[form](opened, columns, rows)


async def _write_csv(file: IO[bytes], columns: Sequence[Column], rows: Rows) -> None:
    line: list[str] = []

    class Line:
        def write(self, text: str) -> None:
            line.append(text)

    writer = csv.writer(Line(), lineterminator="\n")
    writer.writerow([column.name for column in columns])
    async for cells in rows:
        writer.writerow(map(_text, cells))
        file.write("".join(line).encode(errors="replace"))
        line.clear()
    file.write("".join(line).encode())


async def _write_lines(file: IO[bytes], columns: Sequence[Column], rows: Rows) -> None:
    names = [column.name for column in columns]
    async for cells in rows:
        file.write(msgspec.json.encode(dict(zip(names, cells, strict=True))) + b"\n")


async def _write_parquet(file: Path, columns: Sequence[Column], rows: Rows) -> None:
    """By way of lines, because the library reads those piece by piece, and rows only all at once."""
    try:
        import arro3.core as arrow
        import arro3.io as files
    except ModuleNotFoundError:
        words = "Parquet needs a package: pip install 'fairlead[parquet]'"
        raise InvalidSettings(words) from None
    types = {
        "whole": arrow.DataType.int64(),
        "seconds": arrow.DataType.float64(),
        "time": arrow.DataType.timestamp("ms", tz="UTC"),
    }
    text = arrow.DataType.utf8()
    schema = arrow.Schema([arrow.Field(one.name, types.get(one.type, text)) for one in columns])

    def convert(lines: Path) -> None:
        with lines.open("rb") as opened:
            files.write_parquet(
                files.read_json(opened, schema, batch_size=AT_ONCE),
                file,
                max_row_group_size=GROUP,
                compression="zstd(3)",
            )

    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".export-") as folder:
        lines = Path(folder) / "lines"
        with lines.open("wb") as opened:
            await _write_lines(opened, columns, _texts(rows))
        await asyncio.to_thread(convert, lines)


async def _texts(rows: Rows) -> Rows:
    """JSON as text: it has no columns of its own."""
    async for cells in rows:
        yield [_text(cell) if isinstance(cell, msgspec.Raw) else cell for cell in cells]


def _text(cell: Cell) -> str | int | float | None:
    return bytes(cell).decode() if isinstance(cell, msgspec.Raw) else cell


WRITERS = {"csv": _write_csv, "jsonl": _write_lines}
