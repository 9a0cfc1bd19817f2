"""Everything that has a hand in jobs is killed: each job completes, each result is kept once."""

import random

import pytest

from tests.faults.history import Event
from tests.faults.jobs import play
from tests.faults.meter import Meter, Seen
from tests.faults.restarts import durable
from tests.faults.stage import stage


@pytest.mark.timeout(180)
async def test_jobs_complete_although_gateway_worker_supervisor_and_store_are_killed(seed: int) -> None:
    with durable() as server:
        await server.start()
        async with stage(server.url) as scene:
            figures = await play(server, scene.store, scene.fleet, scene.history, seed, jobs=20, kills=4)
    print(figures)
    assert figures["runs_lost"] > 0, "no kill hit a call: this test shows nothing"


@pytest.mark.parametrize(("next_began", "most"), [(2999, 2), (3000, 1)])
def test_a_call_that_was_cut_off_counts_until_its_lease_has_ended(next_began: int, most: int) -> None:
    meter = Meter(random.Random(), {})
    meter.calls = [
        Seen("image", "job:0", fence=1, began=1000),
        Seen("image", "job:0", fence=2, began=next_began, ended=3100),
        Seen("image", "job:1", fence=3, began=3100, ended=3200),
    ]
    tasks = {"job:0": "a", "job:1": "b"}
    events = [
        Event("a", "expire", "executing", "queued", 3000, 1, ""),
        Event("a", "complete", "executing", "completed", 3110, 2, ""),
    ]
    assert meter.most_at_once(tasks, events) == {"image": most}
