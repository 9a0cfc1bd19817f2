"""The SQL of a search: newest first, along one index, and after a bounded number of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlead.history.rows import plain
from fairlead.store.archive import Kind
from fairlead.store.pages import A_BEGINNING, Sought

MOST_LOOKED = 2_000  # rows that a page looks at for conditions besides that of its index

TABLES = {"task": "tasks", "job": "jobs"}
LIMITS = {"task": "task_limits", "job": "job_limits"}
#: The columns of the fields of a record.
COLUMNS = {
    "task": {
        "state": "status",
        "priority": "priority",
        "type": "task_type",
        "user_id": "user_id",
        "tenant": "tenant",
    },
    "job": {"status": "status", "feature": "feature_name", "user_id": "user_id", "tenant": "tenant"},
}
SEARCHED = {"task": ("task_type", "user_id"), "job": ("feature_name", "user_id")}
COMMON = "completed"  # most of what ended
#: Conditions that have an index, the most selective first.
INDEXED = {
    "task": ("needs", "id", "user_id", "status", "error", "task_type", "tenant", "completed"),
    "job": ("needs", "id", "user_id", "status", "tenant", "completed"),
}


class Search(NamedTuple):
    """Of rows of a namespace between two places, without both."""

    kind: Kind
    namespace: int
    after: int
    before: int


class Condition(NamedTuple):
    sql: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """`looked` counts the rows that were looked at, and says which was the last; "": as those found."""

    sql: str
    values: tuple[Any, ...]
    looked: str = ""
    looked_values: tuple[Any, ...] = ()


def searched(search: Search, wanted: Mapping[str, str | None], sought: Sought, count: int) -> Query:
    """Selects place and id of the newest that match."""
    conditions = _conditions(search.kind, wanted, sought)
    index = next((name for name in INDEXED[search.kind] if name in conditions), None)
    others = [condition for name, condition in conditions.items() if name != index]
    if index == "error":  # the index has those with an error
        others.append(conditions["error"])
    rows, values = _rows(search, index, conditions, sought)
    if not others:
        return Query(f"SELECT place, id FROM ({rows} LIMIT {count}) AS found", values)
    looked = f"{rows} LIMIT {MOST_LOOKED}"
    which = " AND ".join(condition.sql for condition in others)
    return Query(
        f"SELECT place, id FROM ({looked}) AS looked WHERE {which} ORDER BY place DESC LIMIT {count}",
        values + tuple(value for condition in others for value in condition.values),
        f"SELECT COUNT(*), MIN(place) FROM ({looked}) AS looked",
        values,
    )


def _rows(
    search: Search, index: str | None, conditions: Mapping[str, Condition], sought: Sought
) -> tuple[str, tuple[Any, ...]]:
    """Along the index, the newest first. The places are nearly those of the times."""
    table, within = TABLES[search.kind], (search.namespace, search.after, search.before)
    columns = {"place", "id", *COLUMNS[search.kind].values(), "error"}
    names = ", ".join(f"{table}.{name}" for name in sorted(columns))
    times = {" AND created_at >= ?": sought.since, " AND created_at <= ?": sought.until}
    in_time = "".join(sql for sql, time in times.items() if time is not None)
    instants = tuple(time for time in times.values() if time is not None)
    if index == "needs":
        limits = LIMITS[search.kind]
        sql = (
            f"SELECT {names} FROM {limits} JOIN {table} ON {table}.place = {limits}.place "
            f"WHERE {limits}.namespace = ? AND {limits}.place > ? AND {limits}.place < ? "
            f"AND {limits}.name = ?{in_time} ORDER BY {limits}.place DESC"
        )
        return sql, within + conditions[index].values + instants
    along = {**conditions, "error": Condition("error IS NOT NULL", ())}
    sql, values = along[index] if index else Condition("true", ())
    return (
        f"SELECT {names} FROM {table} WHERE namespace = ? AND place > ? AND place < ? AND {sql}{in_time} "
        "ORDER BY place DESC",
        within + values + instants,
    )


def _conditions(kind: Kind, wanted: Mapping[str, str | None], sought: Sought) -> dict[str, Condition]:
    """By the name of the column, or of the filter."""
    found: dict[str, Condition] = {}
    for field, value in wanted.items():
        if value is not None:
            column = COLUMNS[kind][field]
            given: Any = int(value) if column == "priority" else plain(value)
            name = "completed" if column == "status" and value.lower() == COMMON else column
            found[name] = Condition(f"{column} = ?", (given,))
    if sought.needs is not None:
        found["needs"] = Condition("", (sought.needs,))
    if sought.error is not None:
        found["error"] = Condition("LOWER(error) LIKE ? ESCAPE '!'", (_containing(sought.error),))
    if text := (sought.text or "").lower():
        if A_BEGINNING.fullmatch(text):
            found["id"] = Condition("id >= ? AND id < ?", (text, text + "g"))
        else:
            names = SEARCHED[kind]
            sql = " OR ".join(f"LOWER({name}) LIKE ? ESCAPE '!'" for name in names)
            found["text"] = Condition(f"({sql})", (_containing(text),) * len(names))
    return found


def _containing(text: str) -> str:
    text = (plain(text) or "").lower()
    for special in "!%_":
        text = text.replace(special, "!" + special)
    return f"%{text}%"
