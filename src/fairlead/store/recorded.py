"""Events of a task that wait in the outbox: the history does not have them yet."""

from fairlead.model.task_history import HistoryEvent
from fairlead.store.connection import Connection
from fairlead.store.records import Row, rows_of

MOST_ENTRIES = 1_000  # that are looked through: more wait only while the database is away


async def unrecorded_events(connection: Connection, task_id: str) -> list[Row]:
    key = connection.keys.key("events")
    ((recorded,),) = await connection.read(("HMGET", connection.keys.meta, "recorded"))
    command = ("XRANGE", key, f"{int(recorded or 0) + 1}-0", "+", "COUNT", MOST_ENTRIES)
    (entries,) = await connection.read(command, paged=True)
    return [row for _, fields in entries for row in rows_of(fields[1]) if row.task == task_id]


def history_event(row: Row) -> HistoryEvent:
    worker = row.detail.get("worker")
    return HistoryEvent(row.seq, row.at, row.act, row.before, row.after, worker, row.fence, row.detail)
