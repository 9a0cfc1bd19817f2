"""A namespace in which everything waits, runs or ended, for the doctor to look at and to tamper with."""

import hashlib
import json
from typing import Any

from fairlead.store.connection import Connection, pack
from fairlead.store.doctor import snapshot
from fairlead.store.doctor.doctor import Breach, examine

START = 1_000_000_000
NOW = START + 700_000
DONE, HIGH = (NOW - 1) * 1000, NOW * 1000  # the fences of `done`, of `high` and of later claims
STOPPED = HIGH + 7
LEASE = 30_000
POLICY = {
    "budget": 2,
    "low_to_medium": 600_000,
    "low_to_high": 1_800_000,
    "medium_to_high": 1_200_000,
    "hold_after": 0,
    "hold_for": 300_000,
    "grace": 1_000,
    "retry_base": 1_000,
    "retry_max": 8_000,
    "crash_limit": 3,
    "worker_ttl": 30_000,
    "finished_ttl": 86_400_000,
    "dead_ttl": 86_400_000,
    "idempotency_ttl": 86_400_000,
    "max_events": 100_000,
    "max_task_types": 1_000,
}
BOTH = "1n:echo;|disk=1,gpu=1"  # the sub-queue that has a hold


def task(name: str, **options: Any) -> dict[str, Any]:
    plain = {"type": "echo", "parameters": "{}", "priority": 1, "capabilities": "", "limits": "", "fair": ""}
    return {"id": name, **plain, "timeout": 600_000, "max_retries": 3, **options}


async def claim(connection: Connection, now: int | str) -> list[str]:
    answer = await connection.run("claim", "w", 20, LEASE, 0, "", "", "", now)
    return [row["id"] for row in answer["tasks"]]


async def fill(fresh: Connection) -> None:
    """Everything at once: tasks that wait, run and ended in all ways, limits full, open and paused."""
    run = fresh.run
    slots = {"gpu": 1, "disk": 2, "cpu": 4, "lone": 1, "shut": 1, "inner": 1, "outer": 1}
    for name, limit in slots.items():
        await run("set_limit", "", name, "slots", limit, "", "", "", START)
    await run("set_limit", "", "api", "rate", "", 60_000_000, 1, "", START)
    drawing = {"name": "draw", "limits": "gpu=1", "text": '{"limits":"gpu=1","timeout":5000}'}
    await run("declare", "code", pack([drawing]), pack([]), pack([]), START)
    await run("submit", pack([task("old", priority=2, capabilities="tpu")]), START)

    await run("register", "w", ",gpu,", "*", 9, 2, pack({}), NOW - 2)
    await run(
        "submit", pack([task("done", key="k", digest="d"), task("broken", facts={"tenant": "acme"})]), NOW - 2
    )
    assert await claim(fresh, NOW - 1) == ["done", "broken"]
    await run("complete", "w", pack([{"id": "done", "result": "{}"}]), NOW - 1)
    report = {"code": "x", "message": "", "retriable": False, "jitter": 0, "retry_after": 0}
    await run("fail", "w", pack([{"id": "broken", **report}]), NOW - 1)

    starting = [
        task("high", priority=0),
        task("wide", limits="cpu=2"),
        task("stopped", limits="cpu=1"),
        task("draws", limits="gpu=1"),
        task("single", limits="lone=1"),
        task("calls", limits="api=1"),
        task("back", capabilities="gpu"),
    ]
    await run("submit", pack(starting), NOW - 1)
    assert set(await claim(fresh, NOW)) == {spec["id"] for spec in starting}
    await run("release", "w", pack([{"id": "back"}]), 0, NOW)
    await run("cancel", "stopped", NOW)
    await run("acquire", "", "disk", 1, LEASE, "bare", "me", 0, 1, "", 1, NOW)
    for name in ("keyright", "keyended"):
        await run("create_key", name, "d", pack({"name": "web", "scopes": "read", "lifetime": 60_000}), NOW)
    await run("revoke_key", "keyended", NOW + 1)
    facts = {"seq": 1, "at": NOW, "previous": "", "before": None, "after": 1, "reason": ""}
    entry = json.dumps(facts | {"actor": "ann", "act": "drain", "subject": "w"})
    await run("audit", "", hashlib.sha256(entry.encode()).hexdigest(), entry, NOW)
    await run("pause", "limit", "shut", 1, NOW)

    waiting = [
        task("first", capabilities="tpu", facts={"user_id": "ann", "tenant": "ä"}),
        task("second", capabilities="tpu", facts={"user_id": "ann"}),
        task("patient", capabilities="tpu", max_wait=100_000),
        task("later", delay=60_000, max_wait=1_000),
        task("draws2", limits="gpu=1"),
        task("draws3", limits="gpu=1"),
        task("both", limits="disk=1,gpu=1"),
        task("calls2", limits="api=1"),
        task("closed", limits="shut=1"),
        task("wider", limits="cpu=3"),
        task("inside", capabilities="tpu", limits="inner=1,outer=1"),
    ]
    await run("submit", pack(waiting), NOW)
    assert await claim(fresh, NOW) == ["back"]
    await run("set_limit", "", "cpu", "slots", 6, "", "", "", NOW)
    await run("register", "idler", ",", ",other,", 1, 0, pack({}), NOW)
    await run("claim", "idler", 1, LEASE, 1, "", "", "", NOW)


async def look(connection: Connection, **options: Any) -> list[Breach]:
    return await examine(connection, NOW, **options)


async def keys_of(connection: Connection) -> set[str]:
    prefix = connection.keys.prefix
    found = connection.client.scan_iter(match=prefix + "*", count=1000)
    return {snapshot.split(key.decode().removeprefix(prefix))[0] async for key in found}


Command = tuple[str | int | bytes, ...]


async def tamper(connection: Connection, *commands: Command) -> None:
    """Runs commands by hand: name, key without prefix, words. {x} is the seq of task x, {x_tag} its tag."""
    client: Any = connection.client
    known: dict[str, str] = {}
    async for key in client.scan_iter(connection.keys.key("task", "*")):
        name = key.decode().rpartition(":")[2]
        seq, tag = await client.hmget(key, "seq", "tag")
        known |= {name: f"{int(seq or 0):013d}", f"{name}_tag": (tag or b"").decode()}
    for name, key, *rest in commands:
        words = [word.format_map(known) if isinstance(word, str) else word for word in rest]
        await client.execute_command(name, connection.keys.prefix + str(key), *words)


def event(name: str, act: str, before: str, to: str, fence: int) -> Command:
    return ("XADD", "events", "*", "events", pack([[name, act, before, to, NOW + 5, fence, "", 1, False]]))
