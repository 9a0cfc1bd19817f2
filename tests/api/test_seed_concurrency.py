"""Concurrency groups over HTTP: by name, with status, ending leases, and clients that race for few slots."""

import asyncio
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, ids, refused, submit
from tests.api.serving import Gateway
from tests.commands import Shell
from tests.faults import acquirers
from tests.faults.acquirers import LEASE, most_at_once
from tests.waiting import wait_until
from tests.warm import WarmProcess

LIMITS = "/api/v1/limits"
PROCESSES, EACH, KILLS = 4, 16, 8


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_WORKER__HEARTBEAT_SECONDS": "1.5", "FAIRLEAD_LEASE__GRACE_SECONDS": "0.2"}


async def status(api: httpx.AsyncClient, name: str) -> dict[str, Any]:
    return good(await api.get(f"{LIMITS}/{name}"))


async def test_a_group_is_defined_by_the_first_task_that_names_it(api: httpx.AsyncClient) -> None:
    workers = [await HttpWorker.register(api) for _ in range(3)]
    for limit in (2, 9, 1):  # the first one is kept
        for _ in range(2):
            await submit(api, "heavy", concurrency_group="processing", concurrency_limit=limit)
    polled = [one for worker in workers for one in await worker.poll(5)]
    assert len(polled) == 2
    seen = await status(api, "processing")
    assert (seen["group"], seen["limit"], seen["active"], seen["waiting"]) == ("processing", 2, 2, 4)
    assert sorted(slot["task_id"] for slot in seen["slots"]) == sorted(ids(polled))
    assert {slot["worker_id"] for slot in seen["slots"]} == {workers[0].id}
    assert all(slot["expires_at"] for slot in seen["slots"])


async def test_without_a_name_the_group_is_the_task_type(api: httpx.AsyncClient) -> None:
    for _ in range(3):
        await submit(api, "send_email", concurrency_limit=1)
    worker = await HttpWorker.register(api)
    assert len(await worker.poll(5)) == 1
    assert (await status(api, "send_email"))["waiting"] == 2


async def test_set_takes_effect_at_once_for_waiting_tasks(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    for _ in range(3):
        await submit(api, concurrency_group="api", concurrency_limit=1)
    assert len(await worker.poll(5)) == 1
    waiting = asyncio.create_task(worker.poll(4, wait_seconds=30))
    good(await api.put(f"{LIMITS}/api", json={"limit": 3}))
    assert len(await waiting) >= 1
    good(await api.put(f"{LIMITS}/api", json={"limit": 1}))  # lowered: nothing new, and nothing is taken away
    await submit(api, concurrency_group="api")
    assert await worker.poll(2) == []
    assert (await status(api, "api"))["active"] >= 2


async def test_the_slot_of_a_worker_that_died_is_free_when_its_lease_ends(api: httpx.AsyncClient) -> None:
    dead, other = [await HttpWorker.register(api) for _ in range(2)]
    first = await submit(api, concurrency_group="one", concurrency_limit=1)
    assert ids(await dead.poll(1)) == [first["task_id"]]
    second = await submit(api, concurrency_group="one")
    started: set[str] = set()

    async def both_have_run() -> bool:
        await other.heartbeat()
        for polled in await other.poll(1):
            started.add(polled["task_id"])
            assert (await status(api, "one"))["active"] == 1
            good(await other.complete(polled))
        return started == {first["task_id"], second["task_id"]}

    await wait_until(both_have_run)
    assert (await api.get(f"{LIMITS}/one")).status_code == 404  # it ended with the last task that needed it


async def test_a_lease_is_renewed_or_ends(api: httpx.AsyncClient) -> None:
    good(await api.put(f"{LIMITS}/gpu", json={"limit": 1}))
    leases = f"{LIMITS}/gpu/leases"
    lease = good(await api.post(leases, json={"lease_seconds": 20, "holder": "me"}), 201)
    for _ in range(3):
        renewed = good(await api.post(f"{leases}/{lease['lease_id']}/renew", json={"lease_seconds": 30}))
        assert renewed["expires_at"] > lease["expires_at"]
        refused(await api.post(leases, json={"lease_seconds": 1}), 409, "limit_full")
    good(await api.post(f"{leases}/{lease['lease_id']}/renew", json={"lease_seconds": 0.2}))
    taken = good(await api.post(leases, json={"lease_seconds": 30, "wait_seconds": 20}), 201)
    assert taken["fence"] > lease["fence"]
    refused(await api.post(f"{leases}/{lease['lease_id']}/renew"), 409, "fenced")


async def test_status_set_and_release_by_command(
    api: httpx.AsyncClient, gateway: Gateway, tmp_path: Path
) -> None:
    """The command prints and does the same as HTTP."""
    shell = Shell(tmp_path, ("--engine", gateway.engine, "--namespace", gateway.namespace))
    assert (await shell.run("limit", "set", "gpu", "--limit", "1")).code == 0
    assert (await status(api, "gpu"))["limit"] == 1
    leases = f"{LIMITS}/gpu/leases"
    lease = good(await api.post(leases, json={"lease_seconds": 60, "holder": "stuck"}), 201)["lease_id"]
    shown = json.loads((await shell.run("limit", "status", "gpu", "--output", "json")).out)
    assert shown == await status(api, "gpu")
    assert [slot["slot_id"] for slot in shown["slots"]] == [lease]
    assert (await shell.run("limit", "release", "gpu", lease)).code != 0
    assert (await status(api, "gpu"))["active"] == 1
    assert (await shell.run("limit", "release", "gpu", lease, "--force")).code == 0
    assert (await status(api, "gpu"))["active"] == 0


def test_the_record_of_the_holders_shows_too_many() -> None:
    def line(act: str, name: str, lease: str, since: float, until: float) -> str:
        return json.dumps([act, f"{LIMITS}/{name}/leases", lease, since, until])

    notes = [
        *(line("held", "a", "1", 1.0, 2.0), line("released", "a", "1", 1.0, 1.5)),
        line("held", "a", "2", 1.5, 2.5),  # as soon as the first was given back
        line("held", "b", "3", 1.0, 2.0),  # killed: it holds until the end of its lease
        line("held", "b", "4", 1.9, 2.9),
        *(line("held", "c", "5", 1.0, 2.0), line("held", "c", "5", 1.0, 3.0)),  # renewed
        *(line("held", "c", "6", 2.5, 3.5), line("held", "c", "7", 2.9, 3.9)),
    ]
    assert most_at_once(notes) == {"a": 1, "b": 2, "c": 3}


def start(gateway: Gateway, notes: Path) -> WarmProcess:
    arguments, env = (gateway.url, str(notes), str(EACH)), {"PATH": "/usr/bin:/bin"}
    with (notes.parent / "acquirers.log").open("a") as log:
        return WarmProcess(arguments, env, notes.parent, log, log, program=acquirers.run)


@pytest.mark.timeout(120)
async def test_64_clients_that_race_and_are_killed_never_hold_more_than_the_limit(
    api: httpx.AsyncClient, store: Store, gateway: Gateway, tmp_path: Path
) -> None:
    allowed = {f"of-{n}": n for n in (1, 2, 3, 5, 8)}
    for name, slots in allowed.items():
        await store.limits.set(name, Slots(limit=slots))
    notes = tmp_path / "notes"
    notes.touch()

    def noted() -> int:
        return notes.read_text().count("\n")

    crews = [start(gateway, notes) for _ in range(PROCESSES)]
    try:
        for _ in range(KILLS):
            due = noted() + 100
            await wait_until(lambda due=due: noted() >= due, 60)  # type: ignore[misc]
            victim = random.choice(crews)
            assert victim.returncode is None, "one has ended by itself"
            victim.kill()
            await victim.wait()
            crews[crews.index(victim)] = start(gateway, notes)
    finally:
        for crew in crews:
            crew.kill()
        await asyncio.gather(*(crew.wait() for crew in crews))
    most = most_at_once(notes.read_text().splitlines())
    assert most.keys() == allowed.keys()
    assert all(most[name] <= slots for name, slots in allowed.items()), most
    assert most["of-1"] == 1 and max(most.values()) > 1, "the record shows nothing"

    async def all_are_free() -> bool:
        return all(limit.active == 0 for limit in await store.limits.all())

    await wait_until(all_are_free, LEASE + 20)
