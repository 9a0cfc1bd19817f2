"""The doctor finds nothing wrong with a busy namespace, and every fault that is planted in it."""

import asyncio
import hashlib
import itertools
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.store import doctor, snapshot
from fairlead.store.connection import Connection, pack, unpack_records
from fairlead.store.doctor import Breach, examine
from fairlead.store.keys import LIVE
from fairlead.store.snapshot import Snapshot
from tests.connections import connected
from tests.servers import Server

numbers = itertools.count()
START = 1_000_000_000
NOW = START + 700_000
DONE, HIGH = (NOW - 1) * 1000, NOW * 1000  # fences: of `done`, of `high`, and of those that followed
STOPPED = HIGH + 7
LEASE = 30_000
POLICY = {
    "budget": 2,
    "low_to_medium": 600_000,
    "low_to_high": 1_800_000,
    "medium_to_high": 1_200_000,
    "hold_after": 0,
    "grace": 1_000,
    "retry_base": 1_000,
    "retry_max": 8_000,
    "crash_limit": 3,
    "worker_ttl": 30_000,
    "finished_ttl": 86_400_000,
    "dead_ttl": 86_400_000,
    "idempotency_ttl": 86_400_000,
    "max_events": 100_000,
}


def task(name: str, **wishes: Any) -> dict[str, Any]:
    plain = {"type": "echo", "parameters": "{}", "priority": 1, "capabilities": "", "limits": "", "fair": ""}
    return {"id": name, **plain, "timeout": 600_000, "max_retries": 3, **wishes}


@pytest.fixture
async def fresh(server: Server) -> AsyncIterator[Connection]:
    """An open namespace without work."""
    connection = connected(server.url, f"doctor-{os.getpid()}-{next(numbers)}")
    client = connection.client
    await connection.run("configure", 1, pack(POLICY))
    yield connection
    async for key in client.scan_iter(match=connection.keys.prefix + "*", count=1000):
        await client.delete(key)
    await connection.close()


async def claim(connection: Connection, now: int | str) -> list[str]:
    answer = await connection.run("claim", "w", 20, LEASE, 0, "", "", "", now)
    return [task_id for task_id, _ in unpack_records(answer[2])]


@pytest.fixture
async def busy(fresh: Connection) -> Connection:
    """Everything at once: tasks that wait, run and ended in all ways, limits full, open and paused."""
    run = fresh.run
    slots = {"gpu": 1, "disk": 2, "cpu": 4, "lone": 1, "shut": 1}
    for name, limit in slots.items():
        await run("set_limit", name, "slots", limit, "", "", START)
    await run("set_limit", "api", "rate", "", 60_000_000, 1, START)
    drawing = {"name": "draw", "limits": "gpu=1", "text": '{"limits":"gpu=1","timeout":5000}'}
    await run("declare", "code", pack([drawing]), pack([]), pack([]), START)
    await run("submit", pack([task("old", priority=2, capabilities="tpu")]), START)

    await run("register", "w", ",gpu,", "*", 9, 2, pack({}), NOW - 2)
    await run("submit", pack([task("done", key="k", digest="d"), task("broken")]), NOW - 2)
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
    await run("acquire", "disk", 1, LEASE, "bare", "me", 0, 1, "", 1, NOW)
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
    ]
    await run("submit", pack(waiting), NOW)
    assert await claim(fresh, NOW) == ["back"]
    await run("set_limit", "cpu", "slots", 6, "", "", NOW)
    await run("register", "idler", ",", ",other,", 1, 0, pack({}), NOW)
    await run("claim", "idler", 1, LEASE, 1, "", "", "", NOW)
    return fresh


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


async def test_a_busy_namespace_is_healthy(busy: Connection) -> None:
    assert await look(busy) == []
    assert {key.name for key in LIVE} <= await keys_of(busy)  # nothing was left out of the picture
    assert await busy.client.hget(busy.keys.key("home"), BOTH) is not None
    assert await busy.client.hget(busy.keys.key("limit", "gpu"), "hold") == BOTH.encode()


async def test_a_namespace_that_was_never_opened_is_healthy(server: Server) -> None:
    connection = connected(server.url, "doctor-nobody")
    assert await examine(connection) == []
    await connection.close()


async def test_looking_changes_nothing(busy: Connection) -> None:
    async def changes() -> int:
        info = await busy.client.info("persistence")
        return int(info["rdb_changes_since_last_save"])

    before = await changes()
    await look(busy)
    assert await changes() == before


TPU, LANE = "1n:echo;tpu|", "1n:echo;"
BOTH = "1n:echo;|disk=1,gpu=1"
GPU_LOT, CPU_LOT, API_LOT = f"gpu=1@{LANE}", f"cpu=3@{LANE}", f"api=1@{LANE}"
FAR = 9_000_000_000_000

#: What is done by hand, the invariants it breaks, and words the report must have.
FAULTS: dict[str, tuple[list[Command], set[str], list[str]]] = {
    "a ticket is lost": ([("ZREM", f"queue:{TPU}", "{second}second")], {"I1"}, ["second", TPU]),
    "a ticket of a running task": ([("ZADD", f"queue:{TPU}", FAR, "{high}high")], {"I1"}, ["high", TPU]),
    "a ticket with another tag": ([("ZADD", f"queue:{TPU}", FAR, "{second}second")], {"I1"}, ["second"]),
    "a ticket of nobody": ([("ZADD", f"queue:{TPU}", FAR, "{first}ghost")], {"I1"}, ["no task ghost"]),
    "a task without age": ([("ZREM", "age:1n", "second")], {"I1"}, ["second", "age:1n"]),
    "a task with another arrival": ([("ZADD", "age:1n", FAR, "second")], {"I1"}, ["second", "age:1n"]),
    "a task in two places": ([("ZADD", "age:2n", FAR, "second")], {"I1"}, ["second", "age:2n"]),
    "a delay without end": ([("ZREM", "delayed:1", "{later}later")], {"I1"}, ["later", "delayed:1"]),
    "a queued task is delayed too": (
        [("ZADD", "delayed:1", FAR, "{second}second")],
        {"I1"},
        ["second is queued"],
    ),
    "a delayed task of another priority": (
        [("ZREM", "delayed:1", "{later}later"), ("ZADD", "delayed:2", FAR, "{later}later")],
        {"I1"},
        ["later is delayed", "delayed:2"],
    ),
    "a patience without end": ([("ZREM", "waits", "patient")], {"I1"}, ["patient", "waits"]),
    "a patience of a running task": ([("ZADD", "waits", FAR, "high")], {"I1"}, ["high is executing"]),
    "a state that is none": ([("HSET", "task:high", "state", "odd")], {"I1", "I2", "I9"}, ["high", "'odd'"]),
    "a stop without a cancel": ([("HSET", "task:high", "stopping", 1)], {"I1"}, ["high", "asked to stop"]),
    "a task is lost": (
        [("DEL", "task:later"), ("ZREM", "delayed:1", "{later}later")],
        {"I1"},
        ["later is lost"],
    ),
    "a dead task is not listed": ([("ZREM", "dead", "broken")], {"I1"}, ["broken", "dead"]),
    "a completed task is listed as dead": ([("ZADD", "dead", 1, "done")], {"I1"}, ["done", "dead"]),
    "a running task without lease": ([("ZREM", "leases", "wide")], {"I2"}, ["wide", "leases"]),
    "a lease with another end": ([("ZADD", "leases", FAR, "wide")], {"I2"}, ["wide", "leases"]),
    "a lease of a queued task": ([("ZADD", "leases", FAR, "second")], {"I2"}, ["second is queued"]),
    "a stopped task without lease": ([("ZREM", "leases", "stopped")], {"I2"}, ["stopped is cancelled"]),
    "a task of two workers": ([("ZADD", "running:idler", 1, "wide")], {"I2"}, ["wide", "running:idler"]),
    "a task of no worker": ([("ZREM", "running:w", "wide")], {"I2"}, ["wide", "running:w"]),
    "a running task counted as high": ([("ZADD", "running:w", 0, "wide")], {"I2"}, ["wide", "running:w"]),
    "a bare lease without record": ([("DEL", "lease:bare")], {"I2", "I3"}, ["no lease:bare", "limit disk"]),
    "a bare lease without end": ([("ZREM", "leases", "lease:bare")], {"I2"}, ["lease:bare"]),
    "units in use of nobody": ([("HINCRBY", "limit:disk", "used", -1)], {"I3"}, ["limit disk"]),
    "units held by nobody": (
        [("HSET", "limit:disk", "held:ghost", 1), ("HINCRBY", "limit:disk", "used", 1)],
        {"I3"},
        ["limit disk", "ghost"],
    ),
    "a lease with more units": (
        [("HSET", "limit:cpu", "held:wide", 3), ("HINCRBY", "limit:cpu", "used", 1)],
        {"I3", "S4"},  # and the lot shown has no room
        ["limit cpu", "held by wide"],
    ),
    "a limit without name": ([("ZREM", "limits", "cpu")], {"I3"}, ["limit cpu"]),
    "a name without limit": ([("ZADD", "limits", 0, "nowhere")], {"I3"}, ["limit nowhere"]),
    "a limit that nobody defined": (
        [("ZADD", "limits", 0, "odd"), ("HSET", "limit:odd", "used", 0)],
        {"I3"},
        ["limit odd"],
    ),
    "a lease with a part of its units": (
        [("HDEL", "limit:lone", "held:single"), ("HSET", "limit:lone", "used", 0)],
        {"I4"},
        ["single", "limit lone"],
    ),
    "a bare lease with no units": (
        [("HDEL", "limit:disk", "held:lease:bare"), ("HSET", "limit:disk", "used", 0)],
        {"I4"},
        ["lease:bare", "limit disk"],
    ),
    "a fence from nowhere": (
        [("HSET", "meta", "fence", HIGH + 5)],
        {"I5"},
        [f"stopped has fence {STOPPED}", f"newest ever given is {HIGH + 5}"],
    ),
    "a fence of two leases": (
        [("HSET", "lease:bare", "fence", HIGH)],
        {"I5"},
        ["lease:bare", f"fence {HIGH}"],
    ),
    "a fence that falls": (
        [
            event("high", "release", "executing", "queued", HIGH - 1),
            event("high", "claim", "queued", "executing", HIGH),
        ],
        {"I5"},
        ["high", f"fence {HIGH - 1} after {HIGH}"],
    ),
    "a claim with the fence before": (
        [
            event("high", "release", "executing", "queued", HIGH),
            event("high", "claim", "queued", "executing", HIGH),
        ],
        {"I5"},
        ["high", "claim", f"fence {HIGH} after {HIGH}"],
    ),
    "a task completed twice": ([event("done", "complete", "executing", "completed", DONE)], {"I6"}, ["done"]),
    "a submit after the end": (
        [
            event("stopped", "submit", "", "queued", 0),
            event("stopped", "cancel", "queued", "cancelled", STOPPED),
        ],
        {"I6"},
        ["stopped", "submitted again"],
    ),
    "a result of another fence": ([("HSET", "task:done", "reported", 7)], {"I7"}, ["done", "fence 7"]),
    "a result of another fence than its event": (
        [("HSET", "task:done", "reported", 2, "fence", 2)],
        {"I5", "I7"},
        [f"done: its complete event has fence {DONE}"],
    ),
    "a key for two tasks": ([("SET", "idempotency:k", "d a b", "KEEPTTL")], {"I8"}, ["key k", "'d a b'"]),
    "a key for no task": (
        [("SET", "idempotency:k", "d odd", "KEEPTTL"), ("HSET", "task:odd", "type", "echo")],
        {"I1", "I8"},
        ["key k names odd"],
    ),
    "a jump": ([event("second", "complete", "queued", "completed", 0)], {"I9"}, ["second", "no transition"]),
    "a gap": (
        [event("high", "claim", "queued", "executing", HIGH + 99)],
        {"I5", "I9"},
        ["high", "from queued"],
    ),
    "another state than told": ([("HSET", "task:broken", "state", "dead_letter")], {"I9"}, ["broken"]),
    "submitted while it waits": ([event("second", "submit", "", "queued", 0)], {"I6", "I9"}, ["second"]),
    "more in use than allowed": ([("HSET", "limit:lone", "limit", 0)], {"S1"}, ["limit lone"]),
    "a head out of order": ([("ZADD", "heads:1n:echo;tpu", FAR, "{first}s" + TPU)], {"S3"}, [TPU]),
    "a head that is not the first": (
        [("HSET", "home", TPU, "{second}h"), ("ZREM", "heads:1n:echo;tpu", "{first}s" + TPU)],
        {"S3", "S4"},
        [TPU, "first"],
    ),
    "a marker that is not of the first": (
        [("HSET", "markers", CPU_LOT, "{second}"), ("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)],
        {"S3", "S4"},
        [CPU_LOT],
    ),
    "a sub-queue without home": ([("HDEL", "home", TPU)], {"S4", "S10"}, [TPU, "no home"]),
    "a hidden sub-queue": ([("ZREM", "heads:1n:echo;tpu", "{first}s" + TPU)], {"S4"}, [TPU]),
    "a hidden lot": ([("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)], {"S4"}, [CPU_LOT]),
    "a parked sub-queue in no lot": (
        [("DEL", f"parked:{GPU_LOT}"), ("ZREM", "lots:gpu", GPU_LOT)],
        {"S4"},
        [f"parked:{GPU_LOT}"],
    ),
    "a lot that its limit forgot": ([("ZREM", "lots:gpu", GPU_LOT)], {"S4"}, ["lots:gpu"]),
    "room without marker": (
        [("HDEL", "markers", CPU_LOT), ("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)],
        {"S4"},
        [CPU_LOT, "room for 3"],
    ),
    "a marker without room": (
        [
            ("HSET", "markers", GPU_LOT, "{draws2}"),
            ("ZADD", f"heads:{LANE}", "{draws2_tag}", "{draws2}m" + GPU_LOT),
        ],
        {"S4"},
        [GPU_LOT, "room for -1"],
    ),
    "a marker at a paused limit": (
        [
            ("HSET", "markers", f"shut=1@{LANE}", "{closed}"),
            ("ZADD", f"heads:{LANE}", "{closed_tag}", "{closed}m" + f"shut=1@{LANE}"),
        ],
        {"S4"},
        ["shut", "room for 0"],
    ),
    "a rate that never refills": ([("ZREM", "refills", API_LOT)], {"S4"}, [API_LOT, "no refill"]),
    "a rate that refills late": ([("ZADD", "refills", FAR, API_LOT)], {"S4"}, [API_LOT, str(FAR)]),
    "a late alarm": ([("HSET", "meta", "alarm", FAR)], {"S4"}, ["alarm", "due at"]),
    "no alarm": ([("HDEL", "meta", "alarm")], {"S4"}, ["alarm"]),
    "an idle worker without record": ([("DEL", "worker:idler")], {"S4"}, ["worker idler"]),
    "an idle worker that nobody wakes": ([("DEL", "idle")], {"S4"}, ["profile", "idle workers"]),
    "an idle worker in no line": ([("HSET", "worker:w", "idle", "odd")], {"S4"}, ["worker w"]),
    "more than the capacity": ([("HSET", "worker:w", "capacity", 6)], {"S8"}, ["worker w", "6 tasks"]),
    "more than the reserve leaves": ([("HSET", "worker:w", "reserve", 4)], {"S8"}, ["worker w", "base high"]),
    "a lane too many": ([("HINCRBY", "lanes", LANE, 1)], {"S10"}, [LANE]),
    "a lane of nobody": ([("HSET", "lanes", "0n:odd;", 0)], {"S10"}, ["0n:odd;"]),
    "a signature too few": ([("HDEL", "signatures", "echo;tpu|")], {"S10"}, ["signatures", "echo;tpu|"]),
    "a user who counts too many": ([("HINCRBY", "waiting", "0::ann", 1)], {"C1"}, ["counts 2", "0::ann"]),
    "a user who is not counted": ([("HDEL", "waiting", "2:ä:ann")], {"C1"}, ["counts 0", "2:ä:ann"]),
    "a count of nobody": ([("HSET", "waiting", "0::eve", 0)], {"C1"}, ["0::eve"]),
    "a home of nobody": ([("HSET", "home", "0n:odd;|", "{first}h")], {"S10"}, ["0n:odd;|"]),
    "a home that is none": ([("HSET", "home", TPU, "{first}x")], {"S4", "S10"}, [TPU, "'x'"]),
    "a second home": ([("ZADD", f"heads:{LANE}", 1, "{draws2}s1n:echo;|gpu=1")], {"S10"}, ["gpu=1"]),
    "a lot it does not wait for": (
        [
            ("HSET", "home", "1n:echo;|gpu=1", "{draws2}p" + f"disk=1@{LANE}"),
            ("DEL", f"parked:{GPU_LOT}"),
            ("ZREM", "lots:gpu", GPU_LOT),
            ("ZADD", f"parked:disk=1@{LANE}", "{draws2_tag}", "{draws2}1n:echo;|gpu=1"),
            ("ZADD", "lots:disk", 0, f"disk=1@{LANE}"),
        ],
        {"S10"},
        ["1n:echo;|gpu=1", "does not wait for that"],
    ),
    "an empty lot": ([("ZADD", "lots:gpu", 0, f"gpu=9@{LANE}")], {"S10"}, ["gpu=9"]),
    "a marker of nobody": ([("HSET", "markers", f"gpu=9@{LANE}", "{first}")], {"S10"}, ["gpu=9"]),
    "a refill of nobody": ([("ZADD", "refills", FAR, f"api=9@{LANE}")], {"S10"}, ["api=9"]),
    "a lot of no limit": (
        [("ZADD", f"parked:odd=1@{LANE}", 1, "{first}odd"), ("ZADD", "lots:odd", 0, f"odd=1@{LANE}")],
        {"S10"},
        ["odd=1"],
    ),
    "no patience": ([("ZREM", "patience", BOTH)], {"S10"}, [BOTH, "patience"]),
    "a patience before its head": ([("ZADD", "patience", 1, BOTH)], {"S10"}, [BOTH, "patience"]),
    "a patience of nobody": ([("ZADD", "patience", 1, "0n:odd;|a=1,b=1")], {"S10"}, ["0n:odd;|a=1,b=1"]),
    "a hold of nobody": ([("HDEL", "holds", BOTH)], {"S10"}, [BOTH, "limit gpu", "limit disk"]),
    "a hold on nothing": ([("HSET", "holds", TPU, "first")], {"S10"}, [TPU, "no limit"]),
    "a hold for somebody else": ([("HSET", "holds", BOTH, "first")], {"S10"}, [BOTH, "first"]),
    "a hold of other units": ([("HSET", "limit:disk", "hold_units", 2)], {"S10"}, ["limit disk", BOTH]),
    "a hold that ended in the books alone": (
        [
            ("DEL", "holds"),
            ("HDEL", "limit:gpu", "hold", "hold_units"),
            ("HDEL", "limit:disk", "hold", "hold_units"),
        ],
        {"S10"},
        [BOTH, "not there"],
    ),
    "a stranger": ([("SET", "odd", "1")], {"K1"}, ["key odd"]),
    "a key with a name too many": ([("SET", "meta:odd", "1")], {"K1"}, ["key meta:odd"]),
    "a key of another type": ([("SET", "paused", "1")], {"K1"}, ["key paused", "hash"]),
    "no meta": ([("DEL", "meta")], {"K1"}, ["key meta"]),
    "an ended task for ever": ([("PERSIST", "task:done")], {"K2"}, ["done is completed"]),
    "a queued task that runs out": ([("PEXPIRE", "task:second", 90_000)], {"K2"}, ["second is queued"]),
    "output of an ended task for ever": (
        [("RPUSH", "output:done", "[1,1,2]")],
        {"K2"},
        ["done is completed", "its output never"],
    ),
    "output of a running task that runs out": (
        [("RPUSH", "output:high", "[1,1,2]"), ("PEXPIRE", "output:high", 90_000)],
        {"K2"},
        ["high is executing", "its output runs out"],
    ),
    "output of no task": ([("RPUSH", "output:ghost", "[1,1,2]")], {"K2"}, ["no task ghost"]),
    "a worker for ever": ([("PERSIST", "worker:w")], {"K2"}, ["worker:w"]),
    "a caretaker for ever": ([("SET", "caretaker", "me")], {"K2"}, ["caretaker never runs out"]),
    "a declaration that cannot be read": (
        [("HSET", "types", "code:echo", "{{")],
        {"K3"},
        ["code:echo", "cannot be read"],
    ),
    "a declaration with a limit nobody defined": (
        [("HSET", "types", "file:echo", '{{"limits":"cpu=1,odd=1"}}')],
        {"K3"},
        ["file:echo", "limit odd"],
    ),
    "a key that is not listed": ([("ZREM", "keys", "keyright")], {"K4"}, ["keyright", "does not have it"]),
    "a key listed for another time": ([("ZADD", "keys", FAR, "keyended")], {"K4"}, ["keyended", str(FAR)]),
    "a key without record": ([("DEL", "key:keyright")], {"K4"}, ["keyright", "no record"]),
    "an audit that was taken out": ([("DEL", "audit")], {"A1"}, ["entries after 0 were taken out"]),
    "an audit that goes on by hand": (
        [("XADD", "audit", "*", "entry", "odd", "hash", "odd")],
        {"A1"},
        ["the entry after 1 cannot be read"],
    ),
    "an act that broke half-way": (
        [("HSET", "meta", "unfinished", b"\x92\xa1a\xa1b"), ("DEL", "leases"), ("DEL", "home")],
        {"W1"},
        ["its remaining 2 writes"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_named(busy: Connection, fault: str) -> None:
    commands, invariants, words = FAULTS[fault]
    await tamper(busy, *commands)
    breaches = await look(busy)
    assert {breach.invariant for breach in breaches} == invariants, breaches
    told = "\n".join(breach.sentence for breach in breaches)
    assert all(word in told for word in words), told


async def test_nothing_is_left_at_rest(fresh: Connection) -> None:
    await fresh.run("set_limit", "cpu", "slots", 1, "", "", NOW)
    assert await look(fresh) == []
    await tamper(fresh, ("HSET", "lanes", LANE, 1), ("HSET", "limit:cpu", "used", 1))
    breaches = await look(fresh)
    assert {breach.invariant for breach in breaches} == {"I10", "I3", "S10"}
    told = [breach.sentence for breach in breaches if breach.invariant == "I10"]
    assert told == [
        "nothing waits or runs, but limit cpu has 1 units in use",
        "nothing waits or runs, but key lanes is there",
    ]


async def test_a_lowered_limit_may_have_more_in_use(busy: Connection) -> None:
    await tamper(busy, ("HSET", "limit:lone", "limit", 0))
    assert await look(busy, lowered=["lone"]) == []
    await tamper(busy, ("HSET", "limit:lone", "lowered", 1))
    assert await look(busy) == []


async def test_a_worker_that_registered_again_with_less_may_run_on(busy: Connection) -> None:
    await busy.run("register", "w", ",gpu,", "*", 1, 1, pack({}), NOW)
    assert await look(busy) == []


async def test_an_id_may_be_used_again_when_its_record_has_run_out(busy: Connection) -> None:
    await tamper(busy, ("DEL", "task:done"), ("DEL", "idempotency:k"))
    assert await look(busy) == []
    await busy.run("submit", pack([task("done", capabilities="tpu")]), NOW)
    assert await look(busy) == []


async def test_old_events_may_be_gone(busy: Connection) -> None:
    await tamper(busy, ("XTRIM", "events", "MAXLEN", 9))
    assert await look(busy) == []


async def test_a_large_namespace_is_read_in_pieces(busy: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "SMALL", 3)
    monkeypatch.setattr(snapshot, "PIECE", 2)
    assert (await snapshot.take(busy)).torn
    assert await look(busy) == []
    await tamper(busy, ("ZREM", "age:1n", "second"))
    assert [breach.invariant for breach in await look(busy)] == ["I1"]


async def test_what_the_second_look_does_not_see_is_not_told(
    busy: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_and_mend(connection: Connection, *rest: Any, **options: Any) -> Snapshot:
        seen = await snapshot.take(connection, *rest, **options)
        await tamper(connection, ("ZADD", "age:1n", NOW, "second"))
        return seen

    monkeypatch.setattr(doctor, "take", look_and_mend)
    await tamper(busy, ("ZREM", "age:1n", "second"), ("ZREM", "age:1n", "first"))
    once = await look(busy, twice=False)
    assert [breach.invariant for breach in once] == ["I1", "I1"]
    await tamper(busy, ("ZREM", "age:1n", "second"))
    (breach,) = await look(busy)
    assert "task first" in breach.sentence


@pytest.mark.parametrize("small", [snapshot.SMALL, 3], ids=["in one step", "in pieces"])
async def test_a_namespace_under_traffic_is_healthy(
    fresh: Connection, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SMALL", small)
    await fresh.run("set_limit", "cpu", "slots", 2, "", "", "")
    await fresh.run("register", "w", ",", "*", 4, 1, pack({}), "")

    async def work() -> None:
        for n in range(60):
            specs = [task(f"{n}-{i}", priority=i, limits="cpu=1") for i in range(3)]
            await fresh.run("submit", pack(specs), "")
            ids = await claim(fresh, "")
            await fresh.run("complete", "w", pack([{"id": id, "result": "{}"} for id in ids]), "")

    working = asyncio.create_task(work())
    try:
        while not working.done():
            assert await examine(fresh) == []
        await working
    finally:
        working.cancel()
