"""Deletes rows of the past, a few at a time."""

from collections.abc import Sequence

from fairlead.history.database import Transaction
from fairlead.history.rows import limits_in, limits_in_job

TASK, JOB = (f"SELECT id, record FROM {table} WHERE place = ?" for table in ("tasks", "jobs"))
#: Unless its id was used again.
OF_TASK = (
    "DELETE FROM {} WHERE task_id = ? AND namespace = ? "
    "AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = ? AND tasks.namespace = ?)"
)


async def forget_tasks(transaction: Transaction, namespace: int, places: Sequence[int]) -> None:
    """With their events and attempts."""
    rows = [(place, *row) for place in places for row in await transaction.read(TASK, place)]
    limits = [(namespace, name, place) for place, _, record in rows for name in limits_in(record)]
    await transaction.run_many("DELETE FROM tasks WHERE place = ?", [(place,) for place, *_ in rows])
    await transaction.run_many(
        "DELETE FROM task_limits WHERE namespace = ? AND name = ? AND place = ?", limits
    )
    for table in ("attempts", "events"):
        of_tasks = [(of, namespace, of, namespace) for _, of, _ in rows]
        await transaction.run_many(OF_TASK.format(table), of_tasks)


async def forget_jobs(transaction: Transaction, namespace: int, places: Sequence[int]) -> None:
    rows = [(place, *row) for place in places for row in await transaction.read(JOB, place)]
    limits = [(namespace, name, place) for place, _, record in rows for name in limits_in_job(record)]
    await transaction.run_many("DELETE FROM jobs WHERE place = ?", [(place,) for place, *_ in rows])
    await transaction.run_many(
        "DELETE FROM job_limits WHERE namespace = ? AND name = ? AND place = ?", limits
    )
