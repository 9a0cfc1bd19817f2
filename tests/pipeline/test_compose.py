"""The example as compose.yaml runs it: each program of ours is started by its command, without containers."""

import asyncio
import contextlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from fairlead.model.job import ENDED, JobStatus, NewJob
from fairlead.pipeline.pipelines import plan
from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.compose_stack import (
    COMPOSE,
    ENDPOINTS,
    EXAMPLE,
    OURS,
    ROOT,
    ComposeStack,
    answers,
    endpoints,
    get,
    make_compose,
)
from tests.connections import patient_store
from tests.postgresql import Postgresql
from tests.prometheus import running_prometheus
from tests.servers import Server, running
from tests.waiting import wait_until


@pytest.fixture
def compose(server: Server, tmp_path: Path) -> ComposeStack:
    return make_compose(server.url, tmp_path)


@pytest.fixture
def settings(compose: ComposeStack) -> Settings:
    return load_settings(EXAMPLE / "fairlead.toml", compose.environment)


@pytest.fixture
async def store(open_store: Callable[..., Store], settings: Settings) -> Store:
    made = open_store(settings.engine.namespace)
    await made.open()
    return made


def here_of(service: dict[str, Any], path: str) -> Path:
    """Where the file or folder of a container is in this repository."""
    places: dict[str, str] = dict(reversed(volume.split(":")[:2]) for volume in service["volumes"])
    return ROOT / places[path]


def test_the_example_has_what_its_settings_name(settings: Settings) -> None:
    assert tuple(settings.services) == ENDPOINTS
    assert OURS.keys() == {"gateway", "caller", "priority_service", "submit", *ENDPOINTS}
    assert COMPOSE["services"].keys() - OURS.keys() == {"redis", "postgres", "prometheus", "grafana"}
    assert OURS["caller"]["environment"] == OURS["gateway"]["environment"]


def test_every_address_in_it_leads_to_a_program_in_it() -> None:
    places = " ".join(OURS["gateway"]["environment"].values())
    for name, port in re.findall(r"//(?:\w+:\w+@)?(\w+):(\d+)", places):
        facts = COMPOSE["services"][name]
        assert name in ("redis", "postgres") or f"--port {port}" in facts["command"], name


def test_nothing_in_it_is_open_to_other_machines() -> None:
    published = [port for facts in COMPOSE["services"].values() for port in facts.get("ports", [])]
    assert published == [f"127.0.0.1:{port}:{port}" for port in (8000, 9090, 3000)]


def test_the_image_can_use_the_database_of_the_example() -> None:
    database = urlsplit(OURS["gateway"]["environment"]["DATABASE_URL"])
    assert (database.scheme, database.username, database.password, database.path) == (
        "postgresql",
        *(
            COMPOSE["services"]["postgres"]["environment"][f"POSTGRES_{name}"]
            for name in ("USER", "PASSWORD")
        ),
        "/" + COMPOSE["services"]["postgres"]["environment"]["POSTGRES_DB"],
    )
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", (ROOT / "Dockerfile").read_text())
    assert set(extras.split(",")) == {"examples", "postgres"}


def test_grafana_finds_the_dashboard_and_prometheus() -> None:
    """Debian has no Grafana to start, so its files are read as its documentation says."""
    grafana = COMPOSE["services"]["grafana"]
    provisioning = here_of(grafana, "/etc/grafana/provisioning")
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "fairlead.yml").read_text())["providers"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home).parent == Path(provider["options"]["path"])
    shown = json.loads(here_of(grafana, home).read_text())
    assert [one["query"] for one in shown["templating"]["list"] if one["type"] == "datasource"] == [
        source["type"]
    ]


async def test_the_priority_service_knows_the_plans(compose: ComposeStack) -> None:
    async with compose.running("priority_service"):
        users = compose.url("priority_service") + "/users"
        assert await answers(f"{users}/user_enterprise_1/priority") == {
            "priority": "high",
            "plan": "enterprise",
        }
        assert await answers(f"{users}/user_pro_2/priority") == {"priority": "medium", "plan": "pro"}
        assert await answers(f"{users}/user_free_3/priority") == {"priority": "low", "plan": "free"}
        unknown = await get(f"{users}/nobody/priority")
        assert unknown is not None and unknown.status_code == 404


async def test_an_endpoint_refuses_calls_over_its_limit_and_names_what_is_missing(
    compose: ComposeStack,
) -> None:
    async with compose.running("image_gen", "--faster", "100"):
        url = compose.url("image_gen")
        await answers(url + "/stats")
        body = {"payload": {"params": {"prompt": "a city"}, "context": {}}}
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            both = await asyncio.gather(*(client.post("/v1/execute", json=body) for _ in range(2)))
            lacking = await client.post("/v1/execute", json={"payload": {"params": {}, "context": {}}})
        assert sorted(answer.status_code for answer in both) == [200, 503]
        done = next(answer for answer in both if answer.is_success).json()
        assert done["data"] == {"image_url": "https://images.example/a%20city.png"}
        assert done["metrics"]["execution_time_ms"] >= 300
        assert (lacking.status_code, lacking.json()) == (422, {"detail": "no prompt was given"})
        assert await answers(url + "/stats") == {"now": 0, "most": 1, "calls": 2, "refused": 1}


async def test_the_gateway_serves_the_limits_of_the_example(compose: ComposeStack, store: Store) -> None:
    async with compose.running("gateway"):
        assert await answers(compose.url("gateway") + "/readyz")
        limits = (await answers(compose.url("gateway") + "/api/v1/limits"))["limits"]
    assert {limit["name"]: limit["limit"] for limit in limits} == {
        "service:prompt_enhancer": 5,
        "service:fast_chat_llm": 4,
        "service:image_gen": 1,
        "service:model_3d_gen": 1,
    }


@pytest.mark.timeout(180)
async def test_jobs_of_every_pipeline_run_and_no_endpoint_gets_too_many_calls(
    compose: ComposeStack, store: Store, settings: Settings
) -> None:
    types = [f"service:{name}" for name in settings.services]
    plans = {name: plan(name, stages, types) for name, stages in settings.pipelines.items()}
    async with endpoints(compose), compose.running("caller"):
        jobs = [
            (
                await store.jobs.submit(NewJob(feature_name=name, stages=planned, input_data={"prompt": "x"}))
            ).job_id
            for name, planned in [*plans.items()] * 5
        ]

        async def all_have_ended() -> bool:
            return all([(await store.jobs.get(job)).status in ENDED for job in jobs])

        await wait_until(all_have_ended, 120, "all jobs have ended")
        found = [await store.jobs.get(job) for job in jobs]
        assert {job.status for job in found} == {JobStatus.COMPLETED}, [job.error for job in found]
        full = next(job for job in found if job.feature_name == "full_pipeline")
        assert full.context["step_3_model_3d_gen"]["data"] == {"model_url": "https://models.example/x.glb"}
        for name in ENDPOINTS:
            stats = await answers(compose.url(name) + "/stats")
            assert stats["most"] <= settings.services[name].limit, name
            assert (stats["now"], stats["refused"]) == (0, 0), name


async def test_prometheus_scrapes_the_gateway_of_the_example(compose: ComposeStack, store: Store) -> None:
    prometheus = COMPOSE["services"]["prometheus"]
    config = here_of(prometheus, "/etc/prometheus")
    for name in ("prometheus.yml", "alerts.yml"):
        text = (config / name).read_text().replace("gateway:8000", f"127.0.0.1:{compose.ports['gateway']}")
        (compose.folder / name).write_text(text.replace("scrape_interval: 15s", "scrape_interval: 1s"))
    command = prometheus["command"].replace("=/etc/prometheus", f"={compose.folder}")
    options = shlex.split(command.replace("=/prometheus", f"={compose.folder / 'data'}"))
    async with compose.running("gateway"), running_prometheus(compose.folder, *options) as scraping:

        async def has_scraped() -> bool:
            return [one["value"][1] for one in await scraping.query('up{job="fairlead"}')] == ["1"]

        await wait_until(has_scraped)
        assert len((await scraping.ask("rules"))["groups"]) == 2


@pytest.mark.timeout(180)
async def test_the_whole_example_runs_jobs_of_all_plans_and_records_them(
    settings: Settings, postgresql: Postgresql, tmp_path: Path
) -> None:
    _, *options = shlex.split(COMPOSE["services"]["redis"]["command"])
    database = postgresql.new_database()
    with running("valkey", *options) as redis:
        compose = make_compose(redis.url, tmp_path, database)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(endpoints(compose))
            for name in ("priority_service", "gateway", "caller"):
                await stack.enter_async_context(compose.running(name))
            await answers(compose.url("gateway") + "/readyz")
            await answers(compose.url("priority_service") + "/users/user_pro_1/priority")
            async with compose.running("submit", "--jobs", "30") as submitting, asyncio.timeout(120):
                code = await submitting.wait()
            shown = (compose.folder / "submit.log").read_text()
            assert code == 0, shown
            stats = {name: await answers(compose.url(name) + "/stats") for name in ENDPOINTS}
            completed = "SELECT count(*) FROM jobs WHERE status = 'COMPLETED'"
            await wait_until(lambda: postgresql.run(completed, urlsplit(database).path[1:]).strip() == "30")
        namespace = compose.environment["FAIRLEAD_ENGINE__NAMESPACE"]
        async with patient_store(redis.url, namespace) as store:
            assert await examine(store.connection) == []
    assert all(name in shown for name in (*ENDPOINTS, "enterprise", "pro", "free"))
    assert stats["prompt_enhancer"]["calls"] == 30  # every pipeline begins with it
    assert all(stats[name]["most"] <= settings.services[name].limit for name in ENDPOINTS)
    assert [stats[name]["refused"] for name in ENDPOINTS] == [0] * 4
