"""Lists of tasks: filtered, in pages, and only those of the caller's tenant."""

from typing import Any

import httpx

from tests.api.requests import TASKS, good, ids, refused, submit


async def found(api: httpx.AsyncClient, **query: Any) -> list[str]:
    """The ids on all pages."""
    listed, cursor = list[str](), ""
    while True:
        answer = good(await api.get(TASKS, params={**query, "cursor": cursor}))
        assert len(answer["tasks"]) <= query.get("limit", 50)
        listed += ids(answer["tasks"])
        if answer["next_cursor"] is None:
            return sorted(listed)
        cursor = answer["next_cursor"]


async def test_pages_hold_every_task_once(api: httpx.AsyncClient) -> None:
    wanted = sorted([(await submit(api))["task_id"] for _ in range(25)])
    assert await found(api, limit=4) == wanted


async def test_only_what_fits_is_listed(api: httpx.AsyncClient) -> None:
    one = (await submit(api, "draw", priority="high", user_id="ann"))["task_id"]
    two = (await submit(api, "draw", priority="low", user_id="bob"))["task_id"]
    three = (await submit(api, "echo", delay_seconds=60, user_id="ann"))["task_id"]
    await api.delete(f"{TASKS}/{two}")
    assert await found(api) == [one, two, three]
    assert await found(api, status="cancelled") == [two]
    assert await found(api, status="delayed", user_id="ann") == [three]
    assert await found(api, task_type="draw", priority="high") == [one]
    assert await found(api, user_id="ann") == [one, three]
    assert await found(api, user_id="eve") == []


async def test_they_are_searched_by_the_beginning_of_an_id_or_parts_of_type_and_user(
    api: httpx.AsyncClient,
) -> None:
    one = (await submit(api, "draw:Large", user_id="ann"))["task_id"]
    two = (await submit(api, "chat", user_id="Draper"))["task_id"]
    assert await found(api, search="dRa") == sorted([one, two])
    assert await found(api, search="large") == [one]
    assert await found(api, search=one[:36].upper()) == [one]
    assert await found(api, search=one[:8], limit=1) == sorted([one, two])
    assert await found(api, search=one[1:20]) == []
    assert await found(api, search="draw", user_id="Draper") == []


async def test_tasks_are_listed_newest_first(api: httpx.AsyncClient) -> None:
    wanted = [(await submit(api))["task_id"] for _ in range(7)]
    page = good(await api.get(TASKS, params={"limit": 4}))
    assert ids(page["tasks"]) == wanted[:2:-1]
    rest = good(await api.get(TASKS, params={"limit": 4, "cursor": page["next_cursor"]}))
    assert (ids(rest["tasks"]), rest["next_cursor"]) == (wanted[2::-1], None)
    refused(await api.get(TASKS, params={"cursor": "0.x"}), 422, "invalid_input", "cursor")
