"""A real Prometheus for the tests, and what the files in `deploy/` ask it."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml  # type: ignore[import-untyped]

from tests.deployed import DEPLOY
from tests.programs import need
from tests.servers import free_port
from tests.waiting import wait_until

ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "fairlead.json"

#: What Grafana puts in place of its variables.
GRAFANA = {"$job": ".*", "$namespace": ".*", "$__rate_interval": "5m"}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels() -> Iterator[tuple[str, str]]:
    """The title of each panel of the dashboard, with each of its queries."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], in_grafana(target["expr"])


def scaling() -> list[str]:
    """The queries by which Kubernetes decides how many workers run."""
    scaled = yaml.safe_load((DEPLOY / "kubernetes" / "worker-scaling.yaml").read_text())
    return [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]]


def in_grafana(query: str) -> str:
    for variable, value in GRAFANA.items():
        query = query.replace(variable, value)
    return query


@dataclass(frozen=True)
class Selector:
    metric: str
    labels: frozenset[str]


def selectors(query: str) -> set[Selector]:
    """What a query reads from Fairlead, with the labels that it compares."""
    found = re.findall(r"\b(fairlead_\w+)(?:\{([^}]*)\})?", query)
    return {Selector(metric, frozenset(re.findall(r"(\w+)=?[=!~]", labels))) for metric, labels in found}


@dataclass(frozen=True)
class Prometheus:
    client: httpx.AsyncClient

    async def ask(self, path: str, **parameters: str) -> Any:
        answer = (await self.client.get(f"/api/v1/{path}", params=parameters)).json()
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]

    async def query(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("query", query=query))["result"]
        return found


@contextlib.asynccontextmanager
async def running_prometheus(folder: Path, *options: str) -> AsyncIterator[Prometheus]:
    """With these options, in this folder."""
    need("prometheus")
    # Debian's has a folder of the system for its data by default: then tests would see those of others.
    assert any(option.startswith("--storage.tsdb.path=") for option in options), options
    address = f"127.0.0.1:{free_port()}"
    options = (*options, f"--web.listen-address={address}")
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "prometheus", *options, cwd=folder, stdout=log, stderr=log
        )
    try:
        async with httpx.AsyncClient(base_url=f"http://{address}", timeout=20, trust_env=False) as client:

            async def is_ready() -> bool:
                assert process.returncode is None, (folder / "prometheus.log").read_text()
                with contextlib.suppress(httpx.TransportError):
                    return (await client.get("/-/ready")).is_success
                return False

            await wait_until(is_ready)
            yield Prometheus(client)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
