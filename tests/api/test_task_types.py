"""Task types over HTTP: those that are declared or paused, and pausing them."""

import httpx

from fairlead.settings import TaskSettings
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, ids, refused, submit

TYPES = "/api/v1/task-types"


async def test_a_paused_type_starts_nothing_until_it_is_resumed(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    given = await submit(api, "draw")
    paused = good(await api.put(f"{TYPES}/draw", json={"paused": True}))
    assert (paused["task_type"], paused["paused"], paused["paused_at"][-1]) == ("draw", True, "Z")
    assert good(await api.put(f"{TYPES}/draw", json={"paused": True}))["paused"]
    assert await worker.poll() == []
    assert good(await api.put(f"{TYPES}/draw", json={"paused": False})) == {
        "task_type": "draw",
        "paused": False,
        "paused_at": None,
    }
    assert ids(await worker.poll()) == [given["task_id"]]
    entries = [(one.act, one.subject, one.before, one.after) for one in (await store.audit.page()).entries]
    assert entries[-1] == ("pause_type", "draw", {"paused": False}, {"paused": True})
    assert entries[0] == ("resume_type", "draw", {"paused": True}, {"paused": False})


async def test_declared_and_paused_types_are_listed_by_name(api: httpx.AsyncClient, store: Store) -> None:
    await store.declare("code", {"draw": TaskSettings(), "chat": TaskSettings()}, {})
    await store.pause_type("mail")
    listed = good(await api.get(TYPES))
    assert [(one["task_type"], one["paused"]) for one in listed["task_types"]] == [
        ("chat", False),
        ("draw", False),
        ("mail", True),
    ]
    first = good(await api.get(TYPES, params={"limit": 2}))
    assert first["next_cursor"] == "draw"
    rest = good(await api.get(TYPES, params={"limit": 2, "cursor": "draw"}))
    assert ([one["task_type"] for one in rest["task_types"]], rest["next_cursor"]) == (["mail"], None)


async def test_a_mistake_is_refused(api: httpx.AsyncClient, store: Store) -> None:
    refused(await api.put(f"{TYPES}/a%20b", json={"paused": True}), 422, "invalid_input", "task_type")
    refused(await api.put(f"{TYPES}/draw", json={"paused": "yes"}), 422, "invalid_input", "paused")
    refused(await api.put(f"{TYPES}/draw", json={}), 422, "invalid_input", "paused")
    assert await store.task_types() == {}
