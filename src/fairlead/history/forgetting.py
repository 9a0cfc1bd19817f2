"""Deletes rows of the past, a few at a time."""

from collections.abc import Sequence

from fairlead.history.database import Transaction
from fairlead.history.rows import limits_in

TASK = "SELECT id, record FROM tasks WHERE place = ?"


async def forget_tasks(transaction: Transaction, namespace: int, places: Sequence[int]) -> None:
    """With their events and attempts."""
    rows = [(place, *row) for place in places for row in await transaction.read(TASK, place)]
    limits = [(namespace, name, place) for place, _, record in rows for name in limits_in(record)]
    await transaction.run_many("DELETE FROM tasks WHERE place = ?", [(place,) for place, *_ in rows])
    await transaction.run_many(
        "DELETE FROM task_limits WHERE namespace = ? AND name = ? AND place = ?", limits
    )
    for table in ("attempts", "events"):
        sql = f"DELETE FROM {table} WHERE task_id = ? AND namespace = ?"
        await transaction.run_many(sql, [(of, namespace) for _, of, _ in rows])
