"""Rows of the history for other programs: tasks, jobs or events, in the order in which they came."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from fairlead.history.database import Row
from fairlead.history.generations import generations_of
from fairlead.history.numbers import event_id, number_of
from fairlead.history.opening import History
from fairlead.history.paging import first_since, place_since
from fairlead.model.priority import Priority
from fairlead.times import time_text

Kind = Literal["tasks", "jobs", "events"]
Type = Literal["text", "json", "whole", "seconds", "time"]
Cell = str | int | float | msgspec.Raw | None

AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type = "text"
    source: str = ""  # in the database, if it has another name there
    read: Callable[[Any], Cell] | None = None

    @property
    def sql(self) -> str:
        return self.source or self.name

    def cell(self, value: Any) -> Cell:
        cell: Cell = value
        if value is None:
            return None
        if self.read:
            cell = self.read(value)
        elif self.type == "time":
            cell = time_text(value)
        elif self.type == "seconds":
            cell = value / 1000
        elif self.type == "json":
            cell = msgspec.Raw(value.encode())
        return cell


def _priority(value: int) -> str:
    return Priority(value).word


OF_ERRORS = (Column("error_code"), Column("error"))
COLUMNS: Mapping[Kind, tuple[Column, ...]] = {
    "tasks": (
        *(Column("id"), Column("task_type"), Column("status"), Column("priority", read=_priority)),
        *(Column("user_id"), Column("tenant"), Column("job_id"), Column("step", "whole")),
        *(Column("created_at", "time"), Column("started_at", "time"), Column("completed_at", "time")),
        *(Column("attempts", "whole"), Column("fence", "whole")),
        *(Column("waited_seconds", "seconds", "waited_ms"), Column("ran_seconds", "seconds", "ran_ms")),
        Column("estimate_p50_seconds", "seconds", "estimate_p50_ms"),
        Column("estimate_p90_seconds", "seconds", "estimate_p90_ms"),
        *(*OF_ERRORS, Column("traceback"), Column("parameters", "json"), Column("result", "json")),
    ),
    "jobs": (
        *(Column("id"), Column("feature_name"), Column("status"), Column("priority", read=_priority)),
        *(Column("user_id"), Column("tenant"), Column("created_at", "time"), Column("completed_at", "time")),
        *OF_ERRORS,
    ),
    "events": (
        *(Column("event", "whole", "id", number_of), Column("task_id"), Column("seq", "whole")),
        *(Column("at", "time"), Column("act"), Column("from", source="before"), Column("to", source="after")),
        *(Column("fence", "whole"), Column("detail", "json")),
    ),
}


async def exported(
    history: History, kind: Kind, since: int, until: int | None = None
) -> AsyncIterator[list[Cell]]:
    """The rows that were made in this time (ms): a cell for each of the columns of this kind."""
    async for low, high in _ranges(history, kind, since):
        columns, key = COLUMNS[kind], "id" if kind == "events" else "place"
        made = "at" if kind == "events" else "created_at"
        names = ", ".join((key, made, *(column.sql for column in columns)))
        where = f"namespace = ? AND {key} > ? AND {key} < ?"
        sql = f"SELECT {names} FROM {kind} WHERE {where} ORDER BY {key} LIMIT {AT_ONCE}"
        number, last = await history.number(), low
        while page := await history.database.read(sql, number, last, high):
            for row in page:
                if until is None or row[1] <= until:
                    yield _cells(columns, row[2:])
            last = page[-1][0]


async def _ranges(history: History, kind: Kind, since: int) -> AsyncIterator[tuple[int, int]]:
    """The numbers between which the rows are: those of events begin again with each life."""
    if kind != "events":
        after = await place_since(history, kind, since)
        yield after, event_id(1 << 18, 0)  # above all
        return
    for life in reversed(await generations_of(history, most=1_000_000)):
        low, high = event_id(life.id, 0), event_id(life.id + 1, 0)
        yield await first_since(history, "events", ("id", "at"), (low, high), since), high


def _cells(columns: tuple[Column, ...], row: Row) -> list[Cell]:
    return [column.cell(value) for column, value in zip(columns, row, strict=True)]
