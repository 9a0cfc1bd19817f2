"""A fail-over to a replica that missed a claim: two workers hold one task, and only one result counts."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Grant, Progress
from fairlead.model.states import State
from fairlead.settings import Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.connections import connected
from tests.faults.replicas import is_linked, primary_and_replica, promote
from tests.store.namespace import claim_one, new
from tests.waiting import wait_until


@pytest.mark.timeout(120)
async def test_a_claim_that_the_replica_missed_has_another_fence_there_and_its_result_is_refused() -> None:
    with primary_and_replica() as (primary, replica):
        await wait_until(lambda: is_linked(replica), 30, "the replica follows")
        before = Store(connected(primary.url, "failover"), Settings())
        await before.open()
        await before.limits.set("gpu", Slots(limit=1))
        for worker in ("stale", "other"):
            await before.workers.register(worker)
        await before.submit_one(new(limits={"gpu": 1}))
        promote(replica, primary)
        missed = await claim_one(before, "stale")
        after = Store(connected(replica.url, "failover"), Settings())
        await after.open()
        given = await claim_one(after, "other")

        assert given.task_id == missed.task_id
        assert given.fence > missed.fence
        stale = Grant(missed.task_id, missed.fence)
        assert await refused(after, "stale", missed.task_id, missed.fence) == ["fenced"] * 3
        with pytest.raises(errors.Fenced):
            await after.extend("stale", stale, 10**6)
        assert await after.complete("other", Completed(given.task_id, given.fence, "right")) == [
            State.COMPLETED
        ]
        assert await refused(after, "stale", missed.task_id, missed.fence) == ["fenced"] * 3
        assert (await after.get(given.task_id)).result == "right"
        for store in (before, after):
            assert await examine(store.connection) == []
            await store.close()


async def refused(store: Store, worker: str, task_id: str, fence: int) -> list[str]:
    """The codes with which the reports of a stale run are refused."""
    answers = [
        *await store.complete(worker, Completed(task_id, fence, "stale")),
        *await store.release(worker, Grant(task_id, fence)),
        *await store.progress(worker, Progress(task_id, fence, 0.5)),
    ]
    return [answer.code for answer in answers if isinstance(answer, errors.FairleadError)]
