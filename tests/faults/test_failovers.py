"""Fail-overs under load: with `replicas = 1` nothing acknowledged is lost, and service is back by itself."""

import random
from pathlib import Path

import pytest

from tests.faults.failovers import play, staged


@pytest.mark.timeout(240)
async def test_what_replicas_have_confirmed_survives_fail_overs(seed: int, tmp_path: Path) -> None:
    async with staged("valkey", 1, tmp_path, random.Random(seed)) as (deployed, players):
        found = await play(deployed, players, ["kill", "replace", "stop"], tasks=100)
    print(found)
    assert found["acknowledged_and_lost"] == {"tasks": 0, "results": 0, "jobs": 0}, found["lost"]
    assert found["losses_noticed"] == 0
    assert found["fences_given_twice"] == 0
    assert found["over_a_limit"] == 0
