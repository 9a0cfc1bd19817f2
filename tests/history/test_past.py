"""The work of the past becomes a trace that the simulator plays."""

from pathlib import Path
from typing import Any

from fairlead.history.opening import History
from fairlead.history.past import past_tasks
from fairlead.model.reports import Failed
from fairlead.settings.limits import Slots
from fairlead.simulate.trace_files import read_trace
from fairlead.simulate.trace_writer import trace_writer
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import record_all
from tests.store.job_steps import complete
from tests.store.namespace import claim_one, new


async def test_a_trace_has_what_ran_in_the_order_in_which_it_could_start(
    store: Store, clock: Clock, history: History, recorder: Recorder, tmp_path: Path
) -> None:
    await store.limits.set("gpu", Slots(2))
    await store.workers.register("w", capacity=9, capabilities=["a", "b"])
    await store.submit_one(new("too_early"))
    await complete(store, await claim_one(store))
    clock.pass_seconds(60)
    since = clock.now
    await store.workers.register("w", capacity=9, capabilities=["a", "b"])
    await store.submit_one(new("delayed", delay_seconds=20))
    clock.pass_seconds(5)
    await store.submit_one(
        new("drawn", user_id="ann", tenant="acme", priority="high", required_capabilities=("b", "a"))
    )
    await store.submit_one(new("limited", limits={"gpu": 2}))
    drawn, limited = (await store.claim("w", 2)).tasks
    clock.pass_seconds(3)
    await complete(store, drawn)
    failure: Any = {"code": "bad", "message": "no", "retriable": False}
    await store.fail("w", Failed(limited.task_id, limited.fence, **failure))
    clock.pass_seconds(22)
    await store.workers.register("w", capacity=9, capabilities=["a", "b"])
    await store.submit_one(new("waiting", delay_seconds=900))
    delayed = await claim_one(store)
    clock.pass_seconds(1)
    await complete(store, delayed)
    await record_all(recorder)
    with trace_writer(tmp_path / "day.csv.gz") as written:
        async for task in past_tasks(history, since):
            written.add(task)
    trace = read_trace(tmp_path / "day.csv.gz")
    assert [trace.kinds[kind].task_type for kind in trace.wants] == ["drawn", "limited", "delayed"]
    assert list(trace.arrivals) == [0, 0, 15_000]
    assert list(trace.durations) == [3_000, 3_000, 1_000]
    assert list(trace.bases) == [0, 1, 1]
    assert [trace.people[one] for one in trace.owners] == [("acme", "ann"), ("", ""), ("", "")]
    assert trace.kinds[0].capabilities == {"a", "b"}
    assert trace.kinds[1].limits == {"gpu": 2}
