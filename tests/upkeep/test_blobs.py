"""Files are kept as long as tasks and jobs need them, and deleted when their time is over."""

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fairlead.errors import StoreLost
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed
from fairlead.model.task import NewTask
from fairlead.settings import BlobSettings, Settings
from fairlead.store.store import Store
from tests.connections import connected
from tests.servers import Server

REF = {"blob": f"sha256:{hashlib.sha256(b'hello').hexdigest()}", "size": 5}


def files(folder: Path) -> list[Path]:
    """Marks and claims too."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
async def blob_store(server: Server, live_store: Store, tmp_path: Path) -> Store:
    """With the time of the tests for tasks, and files of its own."""
    settings = Settings(blobs=BlobSettings(url=f"file://{tmp_path}"))
    return Store(connected(server.url, live_store.connection.keys.namespace), settings)


DAYS = 3 * 86_400


def aged(folder: Path) -> None:
    for path in files(folder):
        before = path.stat().st_mtime - DAYS
        os.utime(path, (before, before))


async def tidied(store: Store) -> None:
    store.blobs._walk_at = 0.0
    await store.upkeep.tidy_blobs()
    while store.blobs._walk:
        await store.upkeep.tidy_blobs()


@pytest.fixture
async def used(blob_store: Store, tmp_path: Path) -> AsyncIterator[Callable[[], int]]:
    """Counts copies of an uploaded file, of which all times are long past."""
    await blob_store.open()
    yield lambda: sum(path.stat().st_size > 0 for path in files(tmp_path))
    await blob_store.close()


async def test_a_file_is_kept_until_its_task_has_ended(
    blob_store: Store, used: Callable[[], int], tmp_path: Path
) -> None:
    await blob_store.blobs.put(b"hello")
    new = NewTask(task_type="echo", parameters={"source": REF})
    await blob_store.submit_one(new)
    await blob_store.workers.register("w")
    (task,) = (await blob_store.claim("w")).tasks
    for _ in range(2):
        aged(tmp_path)
        await tidied(blob_store)
        assert used() == 1
    await blob_store.complete("w", Completed(task.task_id, task.fence, None))
    await tidied(blob_store)
    assert [path.name for path in files(tmp_path) if path.parent.parent.name == "claims"] == []
    assert used() == 1  # its time runs from now on
    aged(tmp_path)
    await tidied(blob_store)
    assert files(tmp_path) == []


async def test_a_failed_task_may_be_replayed_while_its_file_is_there(
    blob_store: Store, used: Callable[[], int], tmp_path: Path
) -> None:
    await blob_store.blobs.put(b"hello")
    await blob_store.submit_one(NewTask(task_type="echo", parameters={"source": REF}))
    await blob_store.workers.register("w")
    (task,) = (await blob_store.claim("w")).tasks
    await blob_store.fail("w", Failed(task.task_id, task.fence, "bad", "no", retriable=False))
    await tidied(blob_store)
    await blob_store.replay(task.task_id)
    aged(tmp_path)
    await tidied(blob_store)
    assert used() == 1


async def test_a_file_that_a_step_made_is_kept_until_its_job_has_ended(
    blob_store: Store, used: Callable[[], int], tmp_path: Path
) -> None:
    stages = ((NewStep("echo", "echo"),), (NewStep("echo", "echo"),))
    job = await blob_store.jobs.submit(NewJob(feature_name="story", stages=stages))
    await blob_store.workers.register("w")
    (task,) = (await blob_store.claim("w")).tasks
    await blob_store.blobs.put(b"hello", task=task)
    aged(tmp_path)
    await tidied(blob_store)
    assert used() == 1
    await blob_store.jobs.cancel(job.job_id)
    aged(tmp_path)
    await tidied(blob_store)
    assert used() == 0


async def test_a_store_that_has_lost_its_data_gives_nothing_up(
    blob_store: Store, used: Callable[[], int], tmp_path: Path
) -> None:
    await blob_store.blobs.put(b"hello")
    new = NewTask(task_type="echo", parameters={"source": REF})
    await blob_store.submit_one(new)
    connection = blob_store.connection
    saved = await connection.client.dump(connection.keys.meta)
    task = connection.keys.key("task", new.task_id)
    record = await connection.client.dump(task)
    await connection.client.delete(connection.keys.meta, task)
    aged(tmp_path)
    with pytest.raises(StoreLost):
        await tidied(blob_store)
    assert used() == 1
    assert len(files(tmp_path)) == 3
    for key, value in ((connection.keys.meta, saved), (task, record)):
        assert value
        await connection.client.restore(key, 0, value)
