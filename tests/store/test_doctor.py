"""The doctor finds nothing wrong with a busy namespace, and reports only what it sees twice."""

import asyncio
from typing import Any

import pytest

from fairlead.store.connection import Connection, pack
from fairlead.store.doctor import doctor, snapshot
from fairlead.store.doctor.doctor import examine
from fairlead.store.doctor.snapshot import Snapshot
from fairlead.store.keys import LIVE
from tests.connections import connected
from tests.servers import Server
from tests.store.busy import BOTH, NOW, claim, keys_of, look, tamper, task


async def test_a_busy_namespace_is_healthy(busy: Connection) -> None:
    assert await look(busy) == []
    live = {key.name for key in LIVE} - {"migrating", "waiters", "revisits", "orphans"}
    live -= {"elastic", "relief", "sessions", "attached"}  # of tiers, which have a test of their own
    assert live <= await keys_of(busy)  # nothing was left out of the picture
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


async def test_nothing_is_left_at_rest(fresh: Connection) -> None:
    await fresh.run("set_limit", "", "cpu", "slots", 1, "", "", "", NOW)
    assert await look(fresh) == []
    await tamper(fresh, ("HSET", "markers", "cpu=1@1n:1", 1), ("HSET", "limit:cpu", "used", 1))
    breaches = await look(fresh)
    assert {breach.invariant for breach in breaches} == {"I10", "I3", "S10"}
    sentences = [breach.sentence for breach in breaches if breach.invariant == "I10"]
    assert sentences == [
        "nothing waits or runs, but limit cpu has 1 units in use",
        "nothing waits or runs, but key markers is there",
    ]


async def test_a_lowered_limit_may_have_more_in_use(busy: Connection) -> None:
    await tamper(busy, ("HSET", "limit:lone", "limit", 0))
    assert await look(busy, lowered=["lone"]) == []
    await tamper(busy, ("HSET", "limit:lone", "lowered", 1))
    assert await look(busy) == []


async def test_a_worker_may_be_idle_while_a_call_is_on_its_way(busy: Connection) -> None:
    await tamper(
        busy,
        ("HSET", "worker:w", "idle", "1o", "called", NOW - 5_000),
        ("HSET", "idle", "1o", 1),
        ("HINCRBY", "meta", "idle_workers", 1),
        ("ZADD", "idlers:1o", NOW, "w"),
    )
    assert await look(busy) == []


async def test_a_silent_worker_may_be_in_its_queue(busy: Connection) -> None:
    await tamper(
        busy,
        ("HSET", "worker:w", "idle", "1o", "seen", NOW - 30_001),
        ("HSET", "idle", "1o", 1),
        ("HINCRBY", "meta", "idle_workers", 1),
        ("ZADD", "idlers:1o", NOW - 30_001, "w"),
    )
    assert await look(busy) == []


async def test_a_worker_whose_record_has_run_out_is_counted_until_somebody_notices(busy: Connection) -> None:
    await tamper(busy, ("DEL", "worker:w"))
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
    await tamper(busy, ("ZREM", "age:1n", "{second}second"))
    assert [breach.invariant for breach in await look(busy)] == ["I1"]  # counts need a picture of one instant
    await tamper(busy, ("XDEL", "tasks", 2))
    assert [breach.invariant for breach in await look(busy)] == ["I1", "L1"]
    await tamper(busy, ("SET", "tasks", "x"))
    assert "K1" in {breach.invariant for breach in await look(busy)}


async def test_a_breach_that_the_second_look_does_not_see_is_not_reported(
    busy: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_and_mend(connection: Connection, *rest: Any, **options: Any) -> Snapshot:
        seen = await snapshot.take(connection, *rest, **options)
        await tamper(connection, ("ZADD", "age:1n", NOW, "{second}second"))
        return seen

    monkeypatch.setattr(doctor, "take", look_and_mend)
    await tamper(busy, ("ZREM", "age:1n", "{second}second"), ("ZREM", "age:1n", "{first}first"))
    once = await look(busy, twice=False)
    assert [breach.invariant for breach in once] == ["I1", "I1", "C1"]
    await tamper(busy, ("ZREM", "age:1n", "{second}second"))
    misplaced, uncounted = await look(busy)
    assert "task first" in misplaced.sentence
    assert uncounted.invariant == "C1", "first is still missing there"


@pytest.mark.parametrize("small", [snapshot.SMALL, 3], ids=["in one step", "in pieces"])
async def test_a_namespace_under_traffic_is_healthy(
    fresh: Connection, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SMALL", small)
    await fresh.run("set_limit", "", "cpu", "slots", 2, "", "", "", "")
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
