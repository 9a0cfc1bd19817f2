"""Reads traces from files: CSV, and the Standard Workload Format of the Parallel Workloads Archive."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Literal

from fairlead.checks import MOST_SECONDS, nearest
from fairlead.errors import InvalidInput
from fairlead.simulate.traces import Collector, Row, Trace, in_line, seconds, shortened

Format = Literal["csv", "swf"]
Progress = Callable[[int], None]  #: called with how many bytes of the file have been read

MOST_LINE = 64 * 1024  # bytes
REPORT_EVERY = 10_000  # lines
REQUIRED = ("arrival_seconds", "duration_seconds")
#: The column of each field of a row.
COLUMNS = dict(
    zip(
        (
            *REQUIRED,
            "task_type",
            "priority",
            "user_id",
            "tenant",
            "limits",
            "capabilities",
            "tier",
            "size_hint",
        ),
        Row._fields,
        strict=True,
    )
)
SWF_COLUMNS = 18
UNKNOWN = "-1"


def read_trace(path: Path, form: Format | None = None, progress: Progress = lambda _: None) -> Trace:
    """The format follows from the name of the file unless it is given."""
    name = path.name.removesuffix(".gz")
    try:
        with path.open("rb") as raw:
            stream: IO[bytes] = raw
            if path.suffix == ".gz":
                stream = io.BufferedReader(gzip.GzipFile(fileobj=raw))
            lines = _lines(path.name, stream, lambda: progress(raw.tell()))
            is_swf = form == "swf" or (form is None and name.endswith(".swf"))
            rows = _swf_rows(path.name, lines) if is_swf else _csv_rows(path.name, lines)
            return Collector(path.name).collect(rows)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise InvalidInput(path.name, f"is damaged, or is not gzip: {problem}") from None
    except OSError as problem:
        raise InvalidInput("TRACE", f"cannot read {path}: {problem.strerror}") from None


def _lines(name: str, stream: IO[bytes], report: Callable[[], None]) -> Iterator[tuple[int, str]]:
    number = 0
    while line := stream.readline(MOST_LINE):
        number += 1
        if len(line) == MOST_LINE:
            raise in_line(name, number, f"is longer than {MOST_LINE} bytes")
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise in_line(name, number, "is not UTF-8 text") from None
        if number % REPORT_EVERY == 0:
            report()


def _csv_rows(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    reader = csv.reader((line for _, line in lines), strict=True)
    try:
        header = next(reader, [])
        names = _names(name, header)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                words = f"has {len(cells)} columns, the first line has {len(names)}"
                raise in_line(name, reader.line_num, words)
            given = {field: cell for field, cell in zip(names, cells, strict=True) if cell}
            yield reader.line_num, _row(name, reader.line_num, given)
    except csv.Error as problem:
        raise in_line(name, reader.line_num, f"is not CSV: {problem}") from None


def _names(name: str, header: list[str]) -> list[str]:
    columns = [cell.strip() for cell in header]
    if missing := [column for column in REQUIRED if column not in columns]:
        words = f"there is no column {missing[0]}: the first line of a CSV trace names its columns"
        raise in_line(name, 1, words)
    for column in columns:
        if column not in COLUMNS:
            meant = nearest(column, COLUMNS)
            hint = f"did you mean {meant}?" if meant else f"known are {', '.join(COLUMNS)}"
            raise in_line(name, 1, f"unknown column {shortened(column)!r}; {hint}")
    if len(set(columns)) < len(columns):
        raise in_line(name, 1, "a column is named twice")
    return [COLUMNS[column] for column in columns]


def _row(name: str, line: int, given: dict[str, str]) -> Row:
    for column in REQUIRED:
        if COLUMNS[column] not in given:
            raise in_line(name, line, f"{column} is empty")
    return Row(**given)


def _swf_rows(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row | None]]:
    """A job takes one slot, and one unit of `processors` for each processor if there is such a limit."""
    for number, line in lines:
        cells = line.split()
        if not cells or cells[0].startswith(";"):
            continue
        if len(cells) != SWF_COLUMNS:
            raise in_line(name, number, f"has {len(cells)} columns, a line of SWF has {SWF_COLUMNS}")
        _, submitted, _, ran, used, _, _, asked, *_ = cells
        wanted, user, group, program = cells[8], *cells[11:14]
        if ran == UNKNOWN:
            yield number, None
            continue
        processors = used if used != UNKNOWN else asked
        yield (
            number,
            Row(
                arrival=submitted,
                duration=ran,
                task_type="job" if program == UNKNOWN else f"program-{program}",
                user_id="" if user == UNKNOWN else user,
                tenant="" if group == UNKNOWN else group,
                limits="" if processors == UNKNOWN else f"processors={processors}",
                size_hint="" if wanted == UNKNOWN else _rounded(name, number, wanted),
            ),
        )


def _rounded(name: str, line: int, wanted: str) -> str:
    """The time that was requested, up to a power of two: there are too many different ones to learn from."""
    try:
        return f"{2 ** math.ceil(math.log2(seconds('requested time', wanted, MOST_SECONDS) / 1000 or 1))}s"
    except InvalidInput as problem:
        raise in_line(name, line, str(problem)) from None
