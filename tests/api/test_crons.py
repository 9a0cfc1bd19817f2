"""Periodic tasks over HTTP: their schedules, last and next ticks."""

from datetime import datetime

import httpx

from fairlead.store.store import Store
from tests.api.requests import good, refused

CRONS = "/api/v1/crons"


async def seen(api: httpx.AsyncClient, name: str, **body: str) -> httpx.Response:
    address = f"/internal/crons/{name}"
    return await (api.post(address, json=body) if body else api.post(address))


async def test_a_cron_is_listed_with_its_schedule_and_ticks(api: httpx.AsyncClient) -> None:
    assert good(await api.get(CRONS)) == {"crons": [], "next_cursor": None}
    began = good(await seen(api, "report", schedule="30 2 * * *", timezone="Europe/Berlin"))
    (cron,) = good(await api.get(CRONS))["crons"]
    following = datetime.fromisoformat(cron.pop("next_tick"))
    assert (following.minute, following.second) == (30, 0)
    assert following > datetime.fromisoformat(began["now"])
    assert cron == {
        "name": "report",
        "schedule": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "last_tick": began["last"],
    }


async def test_what_nobody_declared_is_null(api: httpx.AsyncClient, store: Store) -> None:
    good(await seen(api, "old"))
    await store.crons.last("strange", "0 3 * * *", "Mars/Olympus")
    old, strange = good(await api.get(CRONS))["crons"]
    assert (old["schedule"], old["timezone"], old["next_tick"]) == (None, None, None)
    assert (strange["schedule"], strange["timezone"]) == ("0 3 * * *", "Mars/Olympus")
    assert strange["next_tick"] is None, "this machine does not know the time zone"


async def test_the_schedule_of_the_last_process_that_looked_counts(
    api: httpx.AsyncClient, store: Store
) -> None:
    good(await seen(api, "report", schedule="0 3 * * *"))
    good(await seen(api, "report", schedule="0 4 * * *"))
    good(await seen(api, "report"))
    (cron,) = await store.crons.all()
    assert (cron.schedule, cron.timezone) == ("0 4 * * *", "UTC")


async def test_they_are_paged_by_name(api: httpx.AsyncClient) -> None:
    for name in ("c", "a", "b"):
        good(await seen(api, name, schedule="* * * * *"))
    first = good(await api.get(CRONS, params={"limit": 2}))
    assert ([one["name"] for one in first["crons"]], first["next_cursor"]) == (["a", "b"], "b")
    rest = good(await api.get(CRONS, params={"limit": 2, "cursor": "b"}))
    assert ([one["name"] for one in rest["crons"]], rest["next_cursor"]) == (["c"], None)


async def test_a_mistake_is_refused(api: httpx.AsyncClient) -> None:
    refused(await seen(api, "report", schedule="now\n"), 422, "invalid_input", "schedule")
    refused(await seen(api, "report", schedule="0 3 * * *", timezone="a b"), 422, "invalid_input", "timezone")
    assert good(await api.get(CRONS))["crons"] == []
