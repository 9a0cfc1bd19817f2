"""How far the life of a namespace is recorded."""

from dataclasses import dataclass, fields
from typing import Any

from fairlead.errors import RecordedElsewhere
from fairlead.history.database import Transaction
from fairlead.history.opening import History


@dataclass(slots=True)
class Generation:
    """A life of the namespace; `position`: up to which event all is recorded."""

    id: int
    namespace: int
    epoch: str
    opening: str
    begun_at: int
    first: int
    position: int
    beat: int
    audited: str = "0-0"
    lost: int = 0
    missing: int = 0
    tasks_listed: int | None = None
    jobs_listed: int | None = None


COLUMNS = [field.name for field in fields(Generation)]
NAMES = ", ".join(COLUMNS)
MARKS = ", ".join("?" * len(COLUMNS))
KEPT = ("position", "beat", "audited", "lost", "missing", "tasks_listed", "jobs_listed")
NEXT = "SELECT COALESCE(MAX(id), 0) + 1 FROM generations"


def values_of(generation: Generation) -> list[Any]:
    return [getattr(generation, name) for name in COLUMNS]


async def generations_of(history: History, *, most: int = 100) -> list[Generation]:
    """The latest first."""
    sql = f"SELECT {NAMES} FROM generations WHERE namespace = ? ORDER BY id DESC LIMIT {most}"
    return [Generation(*row) for row in await history.database.read(sql, await history.number())]


async def find_generation(history: History, epoch: str) -> Generation | None:
    sql = f"SELECT {NAMES} FROM generations WHERE namespace = ? AND epoch = ?"
    rows = await history.database.read(sql, await history.number(), epoch)
    return Generation(*rows[0]) if rows else None


async def begin_generation(history: History, new: Generation) -> Generation:
    """Or the one that another process has begun."""
    async with history.database.migrating() as transaction:  # ids are given one after the other
        ((new.id,),) = await transaction.read(NEXT)
        sql = f"INSERT INTO generations ({NAMES}) VALUES ({MARKS}) ON CONFLICT (namespace, epoch) DO NOTHING"
        await transaction.run(sql, *values_of(new))
    found = await find_generation(history, new.epoch)
    assert found
    return found


async def advance(transaction: Transaction, before: Generation, after: Generation) -> None:
    """In the transaction that records what lies between; refused if another process was faster."""
    changes = ", ".join(f"{name} = ?" for name in KEPT)
    sql = f"UPDATE generations SET {changes} WHERE id = ? AND position = ? AND audited = ?"
    values = [getattr(after, name) for name in KEPT]
    if not await transaction.run(sql, *values, before.id, before.position, before.audited):
        raise RecordedElsewhere()
