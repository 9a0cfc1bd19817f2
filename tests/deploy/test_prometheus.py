"""A real Prometheus scrapes a real server that wants a key, and answers what `deploy/` asks it."""

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from fairlead.store.doctor.doctor import examine
from tests.api.key_holders import Keys, bearer
from tests.api.requests import HttpWorker, good, submit
from tests.api.serving import Gateway, serving
from tests.connections import patient_store
from tests.pages import Page, all_blocks
from tests.prometheus import ALERTS, Prometheus, panels, rules, running_prometheus, scaling, selectors
from tests.servers import Server
from tests.waiting import wait_until

MANY = 60  # dead letters: more than FairleadDeadLettersGrow accepts, however long it takes to see them


@pytest.fixture
def gateway(server: Server, tmp_path: Path) -> Iterator[Gateway]:
    url = f"sqlite:///{tmp_path / 'history.sqlite3'}"
    env = {"FAIRLEAD_HISTORY__ENABLED": "true", "FAIRLEAD_HISTORY__URL": url}
    with serving(server.url, f"prometheus-{os.getpid()}", tmp_path, env=env) as gateway:
        yield gateway


@pytest.fixture
async def keys(gateway: Gateway) -> AsyncIterator[Keys]:
    async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
        yield Keys(store)
        assert await examine(store.connection) == []


@asynccontextmanager
async def scraping(gateway: Gateway, key: str, folder: Path) -> AsyncIterator[Prometheus]:
    """With the configuration of the page, every second, and a job without a key."""
    (block,) = [block for block in all_blocks(Page("docs/monitoring.md").text) if block.kind == "yaml"]
    (folder / "fairlead.key").write_text(f"{key}\n")
    (folder / "alerts.yml").write_text(ALERTS.read_text())
    config = yaml.safe_load(block.text.replace("/etc/prometheus", str(folder)))
    (job,) = config["scrape_configs"]
    job["static_configs"] = [{"targets": [gateway.url.removeprefix("http://")]}]
    keyless = {"job_name": "fairlead-keyless", "static_configs": job["static_configs"]}
    config["scrape_configs"].append(keyless)
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    options = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}")
    async with running_prometheus(folder, *options) as prometheus:
        yield prometheus


async def use_everything(api: httpx.AsyncClient) -> None:
    """So that every metric has a value with every label."""
    worker = await HttpWorker.register(api)
    good(await api.put("/api/v1/limits/gpu", json={"limit": 1}))
    await submit(api, limits={"gpu": 1})
    good(await worker.complete(await worker.poll_one()))
    await submit(api, max_retries=1)
    good(await worker.fail(await worker.poll_one(), message="again", retriable=True))
    await submit(api, "nobody", priority="low")
    await leave_dead_letters(api, 1)


async def leave_dead_letters(api: httpx.AsyncClient, count: int) -> None:
    worker = await HttpWorker.register(api, capacity=count, task_types=["fail"])
    tasks = [{"task_type": "fail"}] * count
    good(await api.post("/api/v1/tasks/batch", json={"tasks": tasks}), 201)
    for task in await worker.poll(count):
        good(await worker.fail(task, message="no", retriable=False))


async def test_it_answers_everything_that_deploy_asks(gateway: Gateway, keys: Keys, tmp_path: Path) -> None:
    key, operator = await keys.make("metrics"), await keys.make()
    async with (
        httpx.AsyncClient(base_url=gateway.url, timeout=40, headers=bearer(operator)) as api,
        scraping(gateway, key, tmp_path) as prometheus,
    ):
        await use_everything(api)
        await only_the_job_with_a_key_is_up(prometheus)
        await the_metrics_and_labels_exist(api)
        await every_question_has_an_answer(prometheus)
        await leave_dead_letters(api, MANY)
        await the_alert_fires(
            prometheus, "FairleadDeadLettersGrow", r"\d+ tasks a minute become dead letters\."
        )
        await every_rule_is_healthy(prometheus)


async def only_the_job_with_a_key_is_up(prometheus: Prometheus) -> None:
    refused = "server returned HTTP status 401 Unauthorized"

    async def are_scraped() -> bool:
        scrapes = await prometheus.query('count_over_time(up{job="fairlead"}[1m])')
        if not scrapes or int(scrapes[0]["value"][1]) < 3:  # rates need several
            return False
        targets = (await prometheus.ask("targets"))["activeTargets"]
        found = {one["labels"]["job"]: (one["health"], one["lastError"]) for one in targets}
        return found == {"fairlead": ("up", ""), "fairlead-keyless": ("down", refused)}

    await wait_until(are_scraped)


async def the_metrics_and_labels_exist(api: httpx.AsyncClient) -> None:
    families = text_string_to_metric_families((await api.get("/metrics")).text)
    known: dict[str, set[str]] = {}
    for sample in (sample for family in families for sample in family.samples):
        known.setdefault(sample.name, {"job", "namespace"}).update(sample.labels)
    known["fairlead_not_ready"] = {"job", "namespace", "reason"}  # it has no values while all is well
    asked = [*(rule["expr"] for rule in rules()), *(query for _, query in panels()), *scaling()]
    for selector in {selector for query in asked for selector in selectors(query)}:
        assert selector.labels <= known.get(selector.metric, set()), selector


async def every_question_has_an_answer(prometheus: Prometheus) -> None:
    for title, query in [*panels(), *(("scaling", query) for query in scaling())]:

        async def has_an_answer(query: str = query) -> bool:
            return bool(await prometheus.query(query))

        await wait_until(has_an_answer, because=f"{title!r} has an answer: {query}")


async def the_alert_fires(prometheus: Prometheus, name: str, summary: str) -> None:
    async def fires() -> bool:
        alerts = (await prometheus.ask("alerts"))["alerts"]
        firing = [one for one in alerts if one["labels"]["alertname"] == name and one["state"] == "firing"]
        return bool(firing) and bool(re.fullmatch(summary, firing[0]["annotations"]["summary"]))

    await wait_until(fires, because=f"{name} fires: {summary}")


async def every_rule_is_healthy(prometheus: Prometheus) -> None:
    found = [rule for group in (await prometheus.ask("rules"))["groups"] for rule in group["rules"]]
    assert {rule["name"]: (rule["health"], rule.get("lastError")) for rule in found} == {
        rule["alert"]: ("ok", None) for rule in rules()
    }
