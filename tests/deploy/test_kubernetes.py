"""The manifests of deploy/kubernetes/ are valid and agree, and what their containers start works."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from tests.deployed import DEPLOY, Machine, start_and_work
from tests.pages import Page
from tests.programs import need
from tests.prometheus import scaling
from tests.servers import running

FOLDER = DEPLOY / "kubernetes"
PAGE = Page("docs/deploying.md").text
VERSIONS = ("1.29", "1.37")  # of Kubernetes, whose schemas the manifests follow
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
SCALING = yaml.safe_load((FOLDER / "worker-scaling.yaml").read_text())
RESOURCES = [
    one for name in KUSTOMIZATION["resources"] for one in yaml.safe_load_all((FOLDER / name).read_text())
]


def found(kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in RESOURCES if one["kind"] == kind}


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The spec of each, and its only container."""
    for name, deployment in found("Deployment").items():
        spec = deployment["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        yield name, spec, container


def option(container: dict[str, Any], name: str) -> str:
    command: list[str] = container["command"]
    return command[command.index(name) + 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_they_follow_the_schema_of_kubernetes(version: str) -> None:
    for resource in RESOURCES:
        kubernetes_validate.validate(resource, version, strict=True)


def test_every_file_is_applied_or_is_the_one_for_keda() -> None:
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {*KUSTOMIZATION["resources"], "kustomization.yaml", "worker-scaling.yaml"}
    assert {container["image"] for _, _, container in pods()} == {
        one["name"] for one in KUSTOMIZATION["images"]
    }


def test_what_names_something_names_what_is_there() -> None:
    labels = {
        name: one["spec"]["template"]["metadata"]["labels"] for name, one in found("Deployment").items()
    }
    for name, one in found("Deployment").items():
        assert one["spec"]["selector"]["matchLabels"] == labels[name]
    for kind, selector in (("Service", "selector"), ("PodDisruptionBudget", "selector")):
        for one in found(kind).values():
            chosen = one["spec"][selector]
            assert chosen.get("matchLabels", chosen) == labels["fairlead-server"]
    (port,) = found("Service")["fairlead"]["spec"]["ports"]
    _, _, server = next(pods())
    assert {"name": port["targetPort"], "containerPort": int(option(server, "--port"))} in server["ports"]
    assert SCALING["spec"]["scaleTargetRef"]["name"] in labels
    assert SCALING["metadata"]["namespace"] == KUSTOMIZATION["namespace"]


def test_a_pod_waits_for_longer_than_the_grace_period() -> None:
    for name, spec, container in pods():
        _, pause = (
            container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ("sleep", "0"))
        )
        least = float(option(container, "--grace")) + float(pause) + 5
        assert spec["terminationGracePeriodSeconds"] >= least, name


def test_pods_are_as_restricted_as_their_namespace_demands() -> None:
    for name, spec, container in pods():
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}, name


def test_workers_that_run_tasks_are_not_scaled_away() -> None:
    """The target is less than what a pod can run, so there is room before the next pod is asked for."""
    _, _, worker = list(pods())[1]
    room = int(option(worker, "--processes")) * int(option(worker, "--capacity"))
    waits, runs = SCALING["spec"]["triggers"]
    assert "fairlead_queue_age_seconds" in waits["metadata"]["query"] and waits["metricType"] == "Value"
    assert "fairlead_capacity_used" in runs["metadata"]["query"] and runs["metricType"] == "AverageValue"
    assert room / 2 <= int(runs["metadata"]["threshold"]) < room


def test_only_waits_for_busy_workers_start_others(tmp_path: Path) -> None:
    need("promtool")
    query = scaling()[0]
    waits = {"series": 'fairlead_queue_age_seconds{priority="low", percentile="p95"}', "values": "60x2"}
    cases = [
        {
            "interval": "1m",
            "input_series": [waits, {"series": "fairlead_worker_capacity_used_ratio", "values": f"{used}x2"}],
            "promql_expr_test": [
                {"expr": query, "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": value}]}
            ],
        }
        for used, value in ((1, 60), (0.5, 0))
    ]
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"tests": cases}))
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "test.yml"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_what_the_containers_start_works_and_stops_in_time(tmp_path: Path) -> None:
    (create,) = re.findall(r"^kubectl .* -- (fairlead key .*)$", PAGE, re.M)
    programs = [
        (container["command"], {one["name"]: one["value"] for one in container["env"]})
        for _, _, container in pods()
    ]
    with running("valkey") as server:
        await start_and_work(Machine(server.url, tmp_path), shlex.split(create), programs)
