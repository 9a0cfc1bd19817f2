"""Looking through tasks: by what they are like, page by page, and nobody else's."""

from typing import Any

import httpx

from tests.api.requests import TASKS, good, ids, submit


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
