"""Opening a namespace that an older Fairlead wrote: its indexes are built again from its records.

The older processes must have stopped. What is interrupted is continued by the next process that opens it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from fairlead.model.job import ENDED
from fairlead.store.connection import Connection, pack, text

#: Indexes of schema 2 that are built again, or are gone.
SINGLE = ("lanes", "signatures", "markers", "patience", "holds", "refills", "idle", "durations", "waiting")
FAMILIES = frozenset({"queue", "heads", "parked", "lots", "idlers"})
AT_ONCE = 100  # workers or records of one call


async def migrate(
    connection: Connection, schema: int, policy: Mapping[str, int], clock: Callable[[], str]
) -> None:
    """From `schema`. An interrupted migration may have begun at any: then everything is done again."""

    async def step(name: str, given: Any = None) -> bool:
        """Whether there is more of it to do."""
        answer = await connection.run("migrate", name, pack(given), clock())
        return bool(answer.get("more"))

    found = await _keys(connection)
    drop = [*SINGLE, *(f"{family}:{of}" for family in FAMILIES for of in found[family])]
    jobs_open = await _count_open_jobs(connection, found["job"])
    await step("begin", {"drop": drop, "jobs_open": jobs_open, "policy": policy})
    if schema != 3:  # which has all indexes but those of tenants
        while await step("tasks"):
            pass
        workers = found["worker"]
        for first in range(0, len(workers), AT_ONCE):
            await step("workers", workers[first : first + AT_ONCE])
        for first in range(0, max(len(found["task"]), len(found["job"])), AT_ONCE):
            last = first + AT_ONCE
            await step("ended", {"tasks": found["task"][first:last], "jobs": found["job"][first:last]})
    for first in range(0, len(found["task"]), AT_ONCE):
        await step("tenants", found["task"][first : first + AT_ONCE])
    await step("end")


async def _keys(connection: Connection) -> dict[str, list[str]]:
    """What there is, by the name of its key: `task:a` is `a` of `task`."""
    prefix = connection.keys.prefix
    found: dict[str, list[str]] = defaultdict(list)
    async for key in connection.client.scan_iter(match=prefix + "*", count=1000):
        name, _, of = key.decode(errors="surrogateescape").removeprefix(prefix).partition(":")
        found[name].append(of)
    return found


async def _count_open_jobs(connection: Connection, jobs: list[str]) -> int:
    count = 0
    for first in range(0, len(jobs), 500):
        pipeline = connection.client.pipeline(transaction=False)
        for job in jobs[first : first + 500]:
            pipeline.hget(connection.keys.key("job", job), "status")
        count += sum(text(status) not in ENDED for status in await connection.guard(pipeline.execute()))
    return count
