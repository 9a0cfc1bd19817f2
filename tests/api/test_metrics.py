"""The metrics that Prometheus scrapes agree with the store."""

import json
import re
from pathlib import Path

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead import __version__
from fairlead.api.exposition import gauges, page
from fairlead.errors import LimitFull
from fairlead.model.estimate import ERROR_BOUNDS, EstimateQuality
from fairlead.model.reports import Failed
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots
from fairlead.store.metrics import MOST_LIMITS
from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, submit
from tests.store.namespace import raw

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
MOST_REASONS = 100  # as in metrics.lua
SERVED = ("http_", "store_call_", "event_loop_")  # what the server that is scraped does

Samples = dict[tuple[str, str], float]  # by name without `fairlead_`, and by the value of the label


def read(text: str) -> Samples:
    return {
        (sample.name.removeprefix("fairlead_"), ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def scrape(api: httpx.AsyncClient) -> Samples:
    answer = await api.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    return read(answer.text)


async def test_a_namespace_at_rest_has_a_value_for_everything_that_does_not_depend_on_names(
    api: httpx.AsyncClient,
) -> None:
    found = {key: value for key, value in (await scrape(api)).items() if not key[0].startswith(SERVED)}
    assert found.pop(("build_info", __version__)) == 1
    assert set(found.values()) == {0}
    for name, labels in {
        "tasks_submitted_total": ["high", "medium", "low"],
        "tasks_ended_total": ["high,completed", "low,dead_letter", "medium,cancelled"],
        "task_wait_seconds_count": ["high", "medium", "low"],
        "tasks_promoted_total": ["low,medium", "low,high", "medium,high"],
        "queue_age_seconds": ["high,p50", "low,p99"],
        "task_state": ["queued", "delayed", "executing"],
        **{name: [""] for name in ("tasks_dlq_total", "dead_letters", "worker_capacity_used_ratio")},
    }.items():
        assert all((name, label) in found for label in labels), name


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
    text = page([gauges("limit", "Units.", {(odd,): 7}, "limit")]).decode()
    assert read(text)["limit", odd] == 7
    assert 'limit="a\\"b\\\\c\\nd{}=,\u202e"' in text


async def test_limits_beyond_the_first_ones_are_summed(api: httpx.AsyncClient, store: Store) -> None:
    many = MOST_LIMITS + 10
    for number in range(many):
        await store.limits.set(f"limit{number:03}", Slots(limit=2))
    late = f"limit{many - 1:03}"
    await store.limits.acquire(late)
    with pytest.raises(LimitFull):
        await store.limits.acquire(late, units=2)
    found = await scrape(api)
    assert (found["limit", late], found["limit_active", late]) == (2, 1), "what is used comes first"
    assert found["concurrency_acquisition_total", f"{late},acquired"] == 1
    assert found["concurrency_acquisition_total", f"{late},rejected"] == 1
    assert (found["limit", "other"], found["concurrency_slots_limit", "other"]) == (20, 20)
    assert found["limits_left_out", ""] == 10
    for number in range(MOST_LIMITS):
        await store.limits.acquire(f"limit{number:03}")
    found = await scrape(api)
    assert found["concurrency_acquisition_total", "other,acquired"] == 1
    await store.limits.force_release(late, (await store.limits.get(late)).slots[0].lease_id)
    await store.limits.delete(late)
    await store.limits.set("new", Slots(limit=2))
    await store.limits.acquire("new")
    found = await scrape(api)
    assert found["concurrency_acquisition_total", "new,acquired"] == 1
    assert ("concurrency_acquisition_total", f"{late},acquired") not in found, "its place was needed"


async def test_codes_of_errors_beyond_the_first_are_counted_together(
    api: httpx.AsyncClient, store: Store
) -> None:
    """Handlers choose them; retries and failures share the places."""
    many = MOST_REASONS + 20
    await store.submit(*(NewTask(task_type="draw", max_retries=number % 2) for number in range(many)))
    await store.workers.register("w", capacity=many)
    failures = [
        Failed(task.task_id, task.fence, code=f"code-{number:03}", retriable=True)
        for number, task in enumerate((await store.claim("w", many)).tasks)
    ]
    await store.report("w", failed=failures)
    found = await scrape(api)
    counts = {
        key: value for key, value in found.items() if key[0] in ("tasks_failed_total", "task_retries_total")
    }
    assert len(counts) <= MOST_REASONS + 2
    assert sum(counts.values()) == many
    assert sum(value for (_, labels), value in counts.items() if labels.endswith("other")) == 20


async def test_requests_for_anything_share_the_series_of_the_routes(api: httpx.AsyncClient) -> None:
    def routes(found: Samples) -> set[str]:
        return {labels.partition(",")[0] for name, labels in found if name == "http_requests_total"}

    known = set(json.loads((await api.get("/openapi.json")).content)["paths"])
    for number in range(20):
        await api.get(f"/api/v1/tasks/{number}")
        await api.get(f"/api/v1/limits/any-{number}")
        await api.get(f"/nothing/{number}")
        await api.request(f"ODD{number}", "/api/v1/tasks")
    assert routes(await scrape(api)) <= known | {"/metrics"}


async def test_the_page_lists_every_metric_with_its_labels(api: httpx.AsyncClient) -> None:
    rows = re.findall(r"^\| (`fairlead_.*?) \| (.*?) \|", PAGE.read_text(), re.M)
    listed = {name: labels for names, labels in rows for name in re.findall(r"`(\w+)`", names)}
    worker = await HttpWorker.register(api)
    await submit(api, concurrency_group="gpu", concurrency_limit=1)
    good(await worker.complete(await worker.poll_one()))
    text = (await api.get("/metrics")).text
    assert set(re.findall(r"^# TYPE (\w+)", text, re.M)) == set(listed)
    for family in text_string_to_metric_families(text):
        name = family.name if family.name in listed else f"{family.name}_total"
        for sample in family.samples:
            labels = set(sample.labels) - {"le"}
            assert labels <= set(re.findall(r"`(\w+)`", listed[name])), sample
