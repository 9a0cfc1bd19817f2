"""One namespace, one policy: servers with other settings say so and change nothing, unless they govern."""

import itertools
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from fairlead.store.keys import POLICY_CHANNEL, Keys
from fairlead.store.store import Store
from tests.api.requests import good
from tests.api.serving import Gateway, serving
from tests.commands import Shell
from tests.logs import records
from tests.servers import Server
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

SETTINGS = "/api/v1/settings"
BUDGET = "promotion.budget"
APP = "tests.apps.tour:fl"
namespaces = itertools.count()


@pytest.fixture
def namespace() -> str:
    return f"policy-{os.getpid()}-{next(namespaces)}"


def in_force(server: Gateway) -> dict[str, dict[str, Any]]:
    with httpx.Client(base_url=server.url, timeout=40, trust_env=False) as api:
        return {one["setting"]: one for one in good(api.get(SETTINGS))["settings"]}


def about(server: Gateway, event: str) -> list[str]:
    return [record for record in records(server.log_text()) if f" {event} " in record]


async def test_the_policy_in_force_is_shown_with_its_sources(api: httpx.AsyncClient) -> None:
    shown = {one.pop("setting"): one for one in good(await api.get(SETTINGS))["settings"]}
    assert shown[BUDGET] == {"value": 5, "source": "default", "local_value": 5, "local_source": "default"}
    assert shown["promotion.low_to_high_seconds"]["value"] == 1800
    assert shown["scheduling.started_jobs_first"]["value"] is True
    assert shown["worker.heartbeat_seconds x worker.missed_heartbeats"]["value"] == 30


async def test_a_server_with_other_settings_says_so_and_changes_nothing(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    with serving(server.url, namespace, tmp_path) as first, redis.Redis.from_url(server.url) as client:
        channel = Keys(namespace).key(POLICY_CHANNEL)
        await wait_until(lambda: client.pubsub_numsub(channel)[0][1])  # it listens
        file = tmp_path / "other.toml"
        file.write_text("[promotion]\nbudget = 7\n[retry]\nmax_seconds = 60\n")
        with serving(server.url, namespace, tmp_path, "--config", str(file)) as second:
            budget, retry = about(second, "policy_differs")
            assert "WARNING" in budget
            assert f"setting={BUDGET} in_force=5 here=7" in budget
            assert "other.toml, line 2" in budget
            assert "setting=retry.max_seconds in_force=30 here=60" in retry
            assert "--govern" in retry
            assert in_force(first)[BUDGET]["value"] == 5
            seen = in_force(second)[BUDGET]
            assert (seen["value"], seen["source"], seen["local_value"]) == (5, "namespace", 7)
            assert seen["local_source"].endswith("other.toml, line 2")
        await wait_until(lambda: len(about(first, "policy_differs_elsewhere")) == 2)
        assert f"setting={BUDGET} in_force=5 there=7" in about(first, "policy_differs_elsewhere")[0]
        assert not about(first, "policy_differs")
        assert not about(first, "policy_changed")
        assert not about(second, "policy_differs_elsewhere")


async def test_a_server_of_several_processes_says_it_once(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    async with Store.connect(server.url, namespace):
        env = {"FAIRLEAD_PROMOTION__BUDGET": "7", "FAIRLEAD_LIMITS__GPU": "3"}
        with (
            serving(server.url, namespace, tmp_path, "--processes", "2", env=env) as gateway,
            httpx.Client(base_url=gateway.url, timeout=40, trust_env=False) as api,
        ):
            assert good(api.get("/api/v1/limits/gpu"))["limit"] == 3
            assert in_force(gateway)[BUDGET]["source"] == "namespace"
        assert len(about(gateway, "policy_differs")) == 1


async def test_a_server_that_governs_changes_the_policy_and_the_others_log_it(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    env = {"FAIRLEAD_PROMOTION__BUDGET": "7"}
    with serving(server.url, namespace, tmp_path) as first:
        with serving(server.url, namespace, tmp_path, "--govern", env=env) as second:
            assert in_force(first)[BUDGET]["value"] == 7
            seen = in_force(second)[BUDGET]
            assert (seen["value"], seen["source"]) == (7, "FAIRLEAD_PROMOTION__BUDGET")
            await wait_until(lambda: about(first, "policy_changed"))
            for gateway in (first, second):
                (changed,) = about(gateway, "policy_changed")
                assert f"setting={BUDGET} before=5 after=7" in changed
        async with Store.connect(server.url, namespace, second.settings) as store:
            (entry,) = (await store.audit.page()).entries
            assert (entry.act, entry.subject) == ("govern", namespace)
            assert (entry.before, entry.after) == ({BUDGET: 5}, {BUDGET: 7})


async def test_the_first_server_of_a_namespace_brings_its_policy(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    with serving(server.url, namespace, tmp_path, env={"FAIRLEAD_PROMOTION__BUDGET": "3"}) as first:
        assert in_force(first)[BUDGET]["value"] == 3
        assert not about(first, "policy_differs")


async def test_a_server_that_does_not_govern_declares_its_limits_all_the_same(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    with serving(server.url, namespace, tmp_path):
        pass
    env = {"FAIRLEAD_LIMITS__GPU": "3", "FAIRLEAD_PROMOTION__BUDGET": "7"}
    with (
        serving(server.url, namespace, tmp_path, env=env) as second,
        httpx.Client(base_url=second.url, timeout=40, trust_env=False) as api,
    ):
        assert good(api.get("/api/v1/limits/gpu"))["limit"] == 3


async def test_a_worker_with_other_settings_says_so_and_changes_nothing(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    where = ("--engine", server.url, "--namespace", namespace)
    (tmp_path / "fairlead.toml").write_text("[promotion]\nbudget = 7\n")
    async with Store.connect(server.url, namespace) as store:
        async with WorkerLauncher(tmp_path, lambda: where).workers(APP) as worker:
            assert f"policy_differs setting={BUDGET} in_force=5 here=7" in worker.log_text()
        assert (await store.policy.stored())["budget"] == 5


async def test_commands_show_what_is_in_force_and_put_settings_in_force(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    where = ("--engine", server.url, "--namespace", namespace)
    shell = Shell(tmp_path, where, {"FAIRLEAD_PROMOTION__BUDGET": "7"})
    with serving(server.url, namespace, tmp_path) as gateway:
        rows = [line.split() for line in (await shell.run("config", "show")).out.splitlines()]
        assert [BUDGET, "5", "namespace", "7", "(FAIRLEAD_PROMOTION__BUDGET)"] in rows
        assert ["retry.base_seconds", "1", "default", "-"] in rows
        through = Shell(tmp_path)
        rows = [
            line.split()
            for line in (await through.run("config", "show", "--url", gateway.url)).out.splitlines()
        ]
        assert [BUDGET, "5", "default", "-"] in rows  # of the server's own settings
        assert (await shell.run("config", "apply")).out == f"{BUDGET}: 7, before 5\n"
        assert (await shell.run("config", "apply")).out == "The settings are in force already.\n"
        assert in_force(gateway)[BUDGET]["value"] == 7
        await wait_until(lambda: about(gateway, "policy_changed"))


async def test_a_namespace_that_was_never_opened_has_no_policy(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, ("--engine", server.url, "--namespace", namespace))
    for command in ("show", "apply"):
        ended = await shell.run("config", command)
        assert (ended.code, ended.out) == (3, "")
        assert "was never opened" in ended.err
