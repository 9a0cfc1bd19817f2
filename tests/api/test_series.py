"""The series of the last hour over HTTP."""

import httpx

from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, refused, submit
from tests.conftest import Clock
from tests.store.namespace import raw
from tests.waiting import wait_until

SERIES = "/api/v1/queue/series"


async def test_the_caretaker_of_a_server_notes_samples(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    await wait_until(lambda: raw(store).exists(store.connection.keys.key("samples")))
    await submit(api, priority="high")
    good(await worker.complete(await worker.poll_one()))
    await submit(api, priority="low", delay_seconds=60)
    seconds, _ = await raw(store).time()
    later = Store(store.connection, store.settings, Clock((seconds + 15) * 1000))
    assert await later.series.sample() == 1
    body = good(await api.get(SERIES))
    assert body["every_seconds"] == 10
    points = body["points"]
    assert points[-1]["queues"]["high"] == {"depth": 0, "oldest_age_seconds": 0.0}
    counts = [sum(point[name] for point in points) for name in ("submitted", "started", "completed")]
    assert counts == [2, 1, 1]
    (waits,) = [point["waits"]["high"] for point in points if point["waits"]["high"]]
    assert waits["count"] == 1
    assert waits["p50_seconds"] <= waits["p95_seconds"]


async def test_no_more_than_an_hour_is_returned(api: httpx.AsyncClient) -> None:
    refused(await api.get(SERIES, params={"seconds": 3601}), 422, "invalid_input", "seconds")
