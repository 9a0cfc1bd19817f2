"""Opening a namespace that an older Fairlead wrote: its indexes are built again from its records.

The older processes must have stopped. What is interrupted is continued by the next process that opens it.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fairlead.model.job import ENDED
from fairlead.store.batches import read_in_pieces, scan_keys
from fairlead.store.connection import Connection, pack, text
from fairlead.store.names import LOTS_OF_TIERS, lots_of, may_overlap
from fairlead.store.records import read_facts

#: Indexes of schema 2 that are built again, or are gone.
SINGLE = ("lanes", "signatures", "markers", "patience", "holds", "refills", "idle", "durations", "waiting")
FAMILIES = frozenset({"queue", "heads", "parked", "lots", "idlers"})
AT_ONCE = 100  # workers or records of one call

Step = Callable[..., Awaitable[bool]]
Found = Mapping[str, list[str]]


async def migrate(
    connection: Connection, schema: int, policy: Mapping[str, int | float | str], clock: Callable[[], str]
) -> None:
    """From `schema`. An interrupted migration may have begun at any: then everything is done again."""

    async def step(name: str, given: Any = None) -> bool:
        """Whether there is more of it to do."""
        answer = await connection.run("migrate", name, pack(given), clock())
        return bool(answer.get("more"))

    found = await _keys(connection)
    drop = [*SINGLE, *(f"{family}:{of}" for family in FAMILIES for of in found[family])]
    commands = [("HGET", connection.keys.key("job", job), "status") for job in found["job"]]
    jobs_open = sum(text(status) not in ENDED for status in await read_in_pieces(connection, commands))
    await step("begin", {"drop": drop, "jobs_open": jobs_open, "policy": policy})
    if schema not in (3, 4, 5):  # which lack less
        await _index_again(step, found)
    if schema not in (4, 5):
        for first in range(0, len(found["task"]), AT_ONCE):
            await step("tenants", found["task"][first : first + AT_ONCE])
    if schema != 5:
        await _list(connection, step, found)
    for limit in found["limit"]:
        while await step("holders", limit):
            pass
    await _gather_tiers(connection, step, found)
    await step("end")


async def _index_again(step: Step, found: Found) -> None:
    while await step("tasks"):
        pass
    workers = found["worker"]
    for first in range(0, len(workers), AT_ONCE):
        await step("workers", workers[first : first + AT_ONCE])
    for first in range(0, max(len(found["task"]), len(found["job"])), AT_ONCE):
        last = first + AT_ONCE
        await step("ended", {"tasks": found["task"][first:last], "jobs": found["job"][first:last]})


async def _list(connection: Connection, step: Step, found: Found) -> None:
    tasks, jobs = [await _oldest_first(connection, kind, found) for kind in ("task", "job")]
    for first in range(0, max(len(tasks), len(jobs)), AT_ONCE):
        last = first + AT_ONCE
        await step("lists", {"tasks": tasks[first:last], "jobs": jobs[first:last]})


async def _gather_tiers(connection: Connection, step: Step, found: Found) -> None:
    """Of a namespace with tiers, which came with schema 5: repeating it finds nothing to do."""
    tiers = [name for name in found["lots"] if lots_of(name) == LOTS_OF_TIERS != name]
    watched = [
        *(await connection.read(("ZRANGE", connection.keys.key("nested"), 0, -1)))[0],
        *(await connection.read(("ZRANGE", connection.keys.key("patience"), 0, -1)))[0],
    ]
    subs = [sub for sub in map(text, watched) if not may_overlap(sub)]
    for first in range(0, max(len(tiers), len(subs)), AT_ONCE):
        last = first + AT_ONCE
        await step("tiers", {"limits": tiers[first:last], "subs": subs[first:last]})


async def _oldest_first(connection: Connection, kind: str, found: Found) -> list[str]:
    commands = [("HMGET", connection.keys.key(kind, of), "facts", "created") for of in found[kind]]
    created: list[tuple[int, str]] = []
    for of, (packed, plain) in zip(found[kind], await read_in_pieces(connection, commands), strict=True):
        created.append((int(plain or read_facts(packed).get("created", 0)), of))
    return [of for _, of in sorted(created)]


async def _keys(connection: Connection) -> dict[str, list[str]]:
    """What there is, by the name of its key: `task:a` is `a` of `task`."""
    found: dict[str, list[str]] = defaultdict(list)
    for key in await scan_keys(connection):
        name, _, of = key.partition(":")
        found[name].append(of)
    return found
