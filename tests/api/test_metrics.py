"""The metrics that Prometheus scrapes agree with the store."""

import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from fairlead import __version__
from fairlead.api.routes.metrics import families
from fairlead.model.estimate import ERROR_BOUNDS, EstimateQuality
from fairlead.model.limit import Limit
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, submit
from tests.store.namespace import raw

Samples = dict[tuple[str, str], float]  # by name without `fairlead_`, and by the value of the label


def read(page: str) -> Samples:
    return {
        (sample.name.removeprefix("fairlead_"), ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


async def scrape(api: httpx.AsyncClient) -> Samples:
    answer = await api.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    return read(answer.text)


async def test_a_namespace_at_rest_has_a_value_for_everything(api: httpx.AsyncClient) -> None:
    found = await scrape(api)
    assert found.pop(("build_info", __version__)) == 1
    assert set(found.values()) == {0}
    assert {name for name, _ in found} == {
        *("queue_depth", "queue_oldest_age_seconds", "delayed_tasks", "workers", "capacity", "capacity_used"),
        *("tasks_ended_last_minute", "lost_events", "limits_left_out"),
        *("estimates_total", *(f"estimate_error_seconds_{part}" for part in ("bucket", "count", "sum"))),
    }


async def test_the_page_shows_how_true_estimates_were(api: httpx.AsyncClient, store: Store) -> None:
    quality = EstimateQuality(0.75, 1.0, 4, 3, 1, tuple([2] * 3 + [4] * (len(ERROR_BOUNDS) - 3)), 2.5)
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    assert await store.estimates.learn("me", {"quality": msgspec.json.encode(quality).decode()})
    found = await scrape(api)
    assert (found["estimates_total", "true"], found["estimates_total", "false"]) == (3, 1)
    assert (
        found["estimate_error_seconds_bucket", "0.5"],
        found["estimate_error_seconds_bucket", "+Inf"],
    ) == (2, 4)
    assert (found["estimate_error_seconds_count", ""], found["estimate_error_seconds_sum", ""]) == (4, 2.5)


async def test_the_page_counts_what_waits_runs_and_ended(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    await store.limits.set("openai", Rate(count=1, period_seconds=3600, burst=5))
    worker, leaving = [await HttpWorker.register(api, capacity=4) for _ in range(2)]
    await leaving.heartbeat(status="draining")
    for _ in range(4):
        await submit(api, priority="high", limits={"gpu": 1})
    await submit(api, priority="low", delay_seconds=3600)
    done, _ = await worker.poll(4)
    good(await worker.complete(done))
    await worker.poll(1)
    bad = await submit(api, priority="high", max_retries=0)
    polled = await worker.poll_one()
    assert polled["task_id"] == bad["task_id"]
    good(await worker.fail(polled, message="no", retriable=False))
    await submit(api, "nobody", priority="medium", required_capabilities=["none"])
    found = await scrape(api)
    expected: Samples = {
        ("queue_depth", "high"): 1,
        ("queue_depth", "medium"): 1,
        ("queue_depth", "low"): 0,
        ("delayed_tasks", ""): 1,
        ("workers", "active"): 1,
        ("workers", "draining"): 1,
        ("workers", "dead"): 0,
        ("capacity", ""): 4,
        ("capacity_used", ""): 2,
        ("limit", "gpu"): 2,
        ("limit_active", "gpu"): 2,
        ("limit_waiting", "gpu"): 1,
        ("limit", "openai"): 5,
        ("tasks_ended_last_minute", "completed"): 1,
        ("tasks_ended_last_minute", "failed"): 1,
    }
    assert {key: found[key] for key in expected} == expected
    assert found["queue_oldest_age_seconds", "high"] >= 0


def test_the_page_can_be_parsed_with_any_name_of_a_limit() -> None:
    """Names are checked where limits are defined; this does not lean on it."""
    odd = 'a"b\\c\nd{}=,\u202e'
    limit = Limit(odd, "slots", 7, 1, 2, 6, False, None, None, ())
    units, *_ = families()
    units.add([limit])
    page = b"".join(units.texts).decode()
    assert read(page)["limit", odd] == 7
    assert 'limit="a\\"b\\\\c\\nd{}=,\u202e"' in page
