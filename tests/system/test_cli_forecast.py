"""`fairlead forecast`: who holds each limit and until when, and who is next."""

import json
from typing import Any

from fairlead.clock import now_ms
from fairlead.model.forecast import ForecastRun, LimitForecast, Outlook, Track
from fairlead.model.priority import Priority
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell
from tests.store.namespace import raw


async def test_it_shows_limits_runs_and_the_sentence_of_what_is_followed(
    live_store: Store, shell: Shell
) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    task_id = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))).task_id
    now = now_ms()
    ends: dict[str, Any] = {
        "start_p50": now,
        "start_p90": now + 2_000,
        "end_p50": now + 5_000,
        "end_p90": now + 9_000,
    }
    run = ForecastRun(is_running=False, priority=Priority.LOW, task_id=task_id, task_type="draw", **ends)
    gpu = LimitForecast(name="gpu", kind="slots", limit=1, active=0, waiting=1, tracks=(Track(0, (run,)),))
    await raw(live_store).set(live_store.connection.keys.key("caretaker"), "me", px=60_000)
    head = {"head": {"at": now, "run": 0, "lengths": [], "corrections": [[[1000, 1000]]] * 3}}
    outlook = Outlook(limits={"gpu": gpu}, pressures={}, types={})
    assert await live_store.estimates.save_forecast("me", head, 60_000, outlook)
    shown = await shell.run("forecast", "--follow", task_id)
    limit, row = shown.out.split("\n\n")
    assert limit.splitlines()[1].split()[:4] == ["gpu", "1", "0", "1"]
    assert row.splitlines()[1].split()[:6] == ["gpu", "0", task_id, "draw", "-", "low"]
    assert "No live worker" in shown.err
    (answer,) = json.loads((await shell.run("forecast", "gpu", "--output", "json")).out)["limits"]
    assert answer["tracks"][0]["runs"][0]["state"] == "expected"
