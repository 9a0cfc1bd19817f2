"""Reads rows page by page: any number of them in little memory."""

import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

from fairlead.history.database import Row
from fairlead.history.numbers import PLACES
from fairlead.history.opening import History

AT_ONCE = 200
#: In one statement, because each takes a turn of a thread or of a network.
HALVES = """
WITH RECURSIVE halves (low, high) AS (
  SELECT CAST(? AS BIGINT), CAST(? AS BIGINT)
  UNION ALL
  SELECT
    CASE WHEN {is_before} THEN (low + high) / 2 + 1 ELSE low END,
    CASE WHEN {is_before} THEN high ELSE (low + high) / 2 END
  FROM halves WHERE low < high
)
SELECT MAX(low) FROM halves
""".replace(
    "{is_before}",
    "(SELECT {time} FROM {table} WHERE namespace = ? AND {key} > (low + high) / 2 AND {key} <= ? "
    "ORDER BY {key} LIMIT 1) < ?",
)

T = TypeVar("T", bound=NamedTuple)


async def rows_by_place(
    history: History, table: str, row: Callable[..., T], *, status: str | None = None, after: int = 0
) -> AsyncIterator[T]:
    """The oldest first, those after this place; of all statuses or of one."""
    names = ", ".join(row._fields)  # type: ignore[attr-defined]
    number, which = await history.number(), "" if status is None else " AND status = ?"
    sql = (
        f"SELECT {names} FROM {table} WHERE namespace = ?{which} AND place > ? ORDER BY place LIMIT {AT_ONCE}"
    )
    while True:
        values = [number, after] if status is None else [number, status, after]
        page = await history.database.read(sql, *values)
        for one in page:
            yield row(*one)
        if len(page) < AT_ONCE:
            return
        after = page[-1][0]


async def in_order(sources: Iterable[AsyncIterator[T]]) -> AsyncIterator[T]:
    """Rows of several sources, each in the order of its first column, in that order."""
    heads: list[tuple[Any, int, T, AsyncIterator[T]]] = []
    order = count()
    for source in sources:
        if (first := await anext(source, None)) is not None:
            heapq.heappush(heads, (first[0], next(order), first, source))
    while heads:
        _, _, row, source = heapq.heappop(heads)
        yield row
        if (following := await anext(source, None)) is not None:
            heapq.heappush(heads, (following[0], next(order), following, source))


async def in_chunks(rows: AsyncIterator[T], size: int = AT_ONCE) -> AsyncIterator[list[T]]:
    chunk: list[T] = []
    async for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


async def where_in(history: History, sql: str, values: Sequence[Any], *others: Any) -> list[Row]:
    """`sql` has `{marks}` where the marks of the values go, and those of the others after them."""
    if not values:
        return []
    return await history.database.read(sql.format(marks=", ".join("?" * len(values))), *values, *others)


async def of_ids(history: History, sql: str, ids: Sequence[str]) -> list[Row]:
    """The same for ids: `sql` ends with the namespace, because others in the database may have the same."""
    return await where_in(history, sql, ids, await history.number())


async def place_since(history: History, table: str, since: int) -> int:
    """The place before the first row that was made at this instant (ms) or later."""
    number = await history.number()
    bounds = number << PLACES, (number + 1) << PLACES
    return await first_since(history, table, ("place", "created_at"), bounds, since)


async def first_since(
    history: History, table: str, columns: tuple[str, str], bounds: tuple[int, int], since: int
) -> int:
    """The key before the first row with a time since then, within these bounds.

    Keys rise with time, so it is searched for by halves; no index by time is needed.
    """
    (key, time), number = columns, await history.number()
    within = f"FROM {table} WHERE namespace = ? AND {key} > ? AND {key} < ?"
    # each by itself: SQLite reads all rows for both at once
    ends = f"SELECT (SELECT MIN({key}) {within}), (SELECT MAX({key}) {within})"
    ((first, last),) = await history.database.read(ends, number, *bounds, number, *bounds)
    if first is None:
        return bounds[0]
    sql = HALVES.format(key=key, time=time, table=table)
    values = (number, last, since)
    ((found,),) = await history.database.read(sql, first - 1, last, *values, *values)
    return int(found)
