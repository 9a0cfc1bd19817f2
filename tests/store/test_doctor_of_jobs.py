"""Faults that are planted in jobs are found, and named."""

from collections.abc import AsyncIterator

import pytest

from fairlead.model.job import Job
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, IMAGE, complete, fail, job
from tests.store.namespace import claim_one, raw

#: A field of the job, the value that it is given (None: deleted), the invariants that break and the words.
FAULTS: dict[str, tuple[str, str | None, set[str], str]] = {
    "it counts a step that has ended": ("open", "1", {"J1"}, "is FAILED and counts 1 steps, but has 0"),
    "it runs without a step": ("status", "RUNNING", {"J1", "R1"}, "is RUNNING, but 0 of its steps"),
    "a result is lost": ("result:0", None, {"J2"}, "is past step 0, but has no result of it"),
    "it is past a step that failed": ("step", "2", {"J2", "J4"}, "is past that step"),
}


@pytest.fixture
async def failed(store: Store) -> AsyncIterator[Job]:
    """A job whose second of three steps has failed."""
    await store.workers.register("w")
    submitted = await store.jobs.submit(job(ENHANCE, CHAT, IMAGE))
    await complete(store, await claim_one(store))
    await fail(store, await claim_one(store))
    key = store.connection.keys.key("job", submitted.job_id)
    before = await raw(store).hgetall(key)
    yield await store.jobs.get(submitted.job_id)
    await raw(store).hset(key, mapping=before)


@pytest.mark.parametrize(("field", "value", "broken", "words"), FAULTS.values(), ids=FAULTS)
async def test_a_planted_fault_is_found(
    store: Store, clock: Clock, failed: Job, field: str, value: str | None, broken: set[str], words: str
) -> None:
    key = store.connection.keys.key("job", failed.job_id)
    assert not await examine(store.connection, now_ms=clock.now, twice=False)
    await (raw(store).hdel(key, field) if value is None else raw(store).hset(key, field, value))
    breaches = await examine(store.connection, now_ms=clock.now, twice=False)
    assert {breach.invariant for breach in breaches} == broken
    assert any(words in breach.sentence for breach in breaches)
