"""Fail-overs under load: with `replicas = 1` nothing acknowledged is lost, and what is lost is repaired."""

import random
from pathlib import Path

import pytest

from tests.faults.failovers import play, staged


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_what_replicas_have_confirmed_survives_fail_overs(seed: int, tmp_path: Path) -> None:
    async with staged(tmp_path, random.Random(seed), replicas=1) as (deployed, players):
        found = await play(deployed, players, ["kill", "replace"], tasks=100)
    print(found)
    assert found["acknowledged_and_lost"] == {"tasks": 0, "results": 0, "jobs": 0}, found["lost"]
    assert found["losses_noticed"] == 0
    assert found["fences_given_twice"] == 0
    assert found["over_a_limit"] == 0


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_what_a_fail_over_has_lost_comes_back_from_the_history(seed: int, tmp_path: Path) -> None:
    """In the ledger mode; the replicas are cut off for a moment before the primary is killed."""
    async with staged(tmp_path, random.Random(seed), replicas=0, restores=True) as (deployed, players):
        found = await play(deployed, players, ["behind"], tasks=100)
    print(found)
    assert found["losses_noticed"] == 1
    assert (found["acknowledged_and_lost"]["tasks"], found["acknowledged_and_lost"]["jobs"]) == (0, 0), found[
        "lost"
    ]
    assert found["fences_given_twice"] == 0
