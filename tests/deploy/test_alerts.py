"""The alerts of deploy/prometheus/ fire when they should, and each is explained."""

import re
import subprocess

import yaml  # type: ignore[import-untyped]

from tests.programs import need
from tests.prometheus import ALERTS, rules
from tests.wheel import ROOT

TESTS = ALERTS.with_name("alerts.test.yml")
NAMES = [rule["alert"] for rule in rules()]


def test_each_fires_late_enough_and_only_beyond_its_threshold() -> None:
    need("promtool")
    for act, file in (("check", ALERTS), ("test", TESTS)):
        done = subprocess.run(["promtool", act, "rules", file], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_is_seen_to_fire_and_not_to_fire() -> None:
    seen: dict[str, set[bool]] = {name: set() for name in NAMES}
    for test in yaml.safe_load(TESTS.read_text())["tests"]:
        for case in test["promql_expr_test"]:
            (name,) = re.findall(r'alertname="(\w+)"', case["expr"])
            seen[name].add("exp_samples" in case)
    assert seen == {name: {True, False} for name in NAMES}


def test_each_is_on_the_page_with_its_severity() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    rows = re.findall(r"^\| `(Fairlead\w+)` \| (\w+) \|", page, re.M)
    assert rows == [(rule["alert"], rule["labels"]["severity"]) for rule in rules()]
    assert all({"summary", "description"} == rule["annotations"].keys() for rule in rules())
