"""Several namespaces in one database: what one of them knows of a task says nothing of a task of another."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest
import uuid_utils

from fairlead.history.archive import SqlArchive
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.history.pruning import Keep, prune
from fairlead.history.restoring import Restore
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.history.test_restoring import everything_raw, put_back
from tests.recording import record_all
from tests.store.namespace import claim_one, new, raw


class Site(NamedTuple):
    store: Store
    history: History

    async def record(self) -> None:
        await record_all(Recorder(self.store, self.history))

    async def start(self, task_id: str) -> Task:
        await self.store.submit_one(new(task_id=task_id))
        return await claim_one(self.store)


@pytest.fixture
async def sites(
    open_store: Callable[..., Store], clock: Clock, history_url: str
) -> AsyncIterator[tuple[Site, Site]]:
    made: list[Site] = []
    for _ in range(2):
        store = open_store(clock=clock)
        await store.open()
        await store.workers.register("w")
        history = History(open_database(history_url), store.connection.keys.namespace)
        store.archive = SqlArchive(history_url, store.connection.keys.namespace)
        made.append(Site(store, history))
    yield made[0], made[1]
    for site in made:
        archive: Any = site.store.archive
        await archive.close()
        await site.history.close()


async def test_each_has_its_own_task_under_the_same_id(sites: tuple[Site, Site], clock: Clock) -> None:
    one, other = sites
    task_id = str(uuid_utils.uuid7())
    task = await one.start(task_id)
    clock.pass_ms(1)
    running = await other.start(task_id)
    for site in sites:
        await site.record()
    await one.store.cancel(task_id)
    await one.record()
    (attempt,) = (await one.store.history(task_id)).attempts
    (open_attempt,) = (await other.store.history(task_id)).attempts
    assert (attempt.fence, attempt.ended_by) == (task.fence, "cancel")
    assert (open_attempt.fence, open_attempt.ended_at) == (running.fence, None)
    assert [event.act for event in (await other.store.history(task_id)).events] == ["submit", "claim"]


async def test_a_restore_takes_nothing_of_the_other(sites: tuple[Site, Site]) -> None:
    """As after a fail-over: what has changed since is repaired task by task."""
    one, other = sites
    task_id = str(uuid_utils.uuid7())
    before = await everything_raw(one.store)
    await one.store.submit_one(new(task_id=task_id))
    await one.record()
    task = await other.start(task_id)
    await other.store.complete("w", Completed(task.task_id, task.fence, "of the other"))
    await other.record()
    await put_back(one.store, before)
    await one.store.epochs.seal()
    done = await Restore(one.store, one.history).run(hold_ms=0)
    await one.store.open()
    assert done.tasks == {State.QUEUED: 1}
    assert (await one.store.get(task_id)).status == State.QUEUED
    assert (await other.store.get(task_id)).result == "of the other"


async def test_what_one_forgets_the_other_keeps(sites: tuple[Site, Site], clock: Clock) -> None:
    one, other = sites
    task_id = str(uuid_utils.uuid7())
    for site in sites:
        await site.start(task_id)
    await one.store.cancel(task_id)
    for site in sites:
        await site.record()
    clock.pass_seconds(31 * 86_400)
    assert await prune(one.history, Keep(), clock.now) == 1
    assert await prune(other.history, Keep(), clock.now) == 0
    assert [event.act for event in (await other.store.history(task_id)).events] == ["submit", "claim"]


async def test_events_stay_while_a_later_task_has_the_id(sites: tuple[Site, Site], clock: Clock) -> None:
    site, _ = sites
    task_id = str(uuid_utils.uuid7())
    task = await site.start(task_id)
    await site.store.complete("w", Completed(task_id, task.fence))
    await site.record()
    clock.pass_seconds(31 * 86_400)
    await raw(site.store).delete(site.store.connection.keys.key("task", task_id))
    await site.store.workers.register("w")
    await site.start(task_id)
    await site.record()
    assert await prune(site.history, Keep(), clock.now) == 1
    assert [event.act for event in (await site.store.history(task_id)).events][-2:] == ["submit", "claim"]
