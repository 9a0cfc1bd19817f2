"""A data folder of Fairlead 0.1.0 (schema 2) is opened by this version, and everything in it continues."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fairlead.model.job import JobStatus
from fairlead.model.reports import Completed
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import Task
from fairlead.settings import EngineSettings, RetrySettings, Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.opening import gateway_store
from fairlead.store.store import Store
from tests.store.schema2 import FIXTURES
from tests.waiting import wait_until

EXPECTED: dict[str, Any] = json.loads((FIXTURES / "schema2-data.json").read_text())
TASKS: dict[str, dict[str, Any]] = EXPECTED["tasks"]
IN_2100 = EXPECTED["names"]["in-2100"]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Those of a process that opens a copy of the folder."""
    # another server may not read the files of this one
    monkeypatch.delenv("FAIRLEAD_SERVER_BIN", raising=False)
    with tarfile.open(FIXTURES / "schema2-data.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return Settings(
        engine=EngineSettings(data=str(tmp_path)),
        limits={"gpu": Slots(limit=2)},
        retry=RetrySettings(base_seconds=0.01),
    )


def content_of(task: Task) -> dict[str, Any]:
    """What no start and no retry changes."""
    names = ("task_type", "parameters", "limits", "user_id", "tenant")
    return {"priority": task.priority.word} | {name: getattr(task, name) for name in names}


async def run_what_waits(store: Store) -> bool:
    """Completes what can start now; whether all is done but the task that waits for the year 2100."""
    await store.workers.register("w", capacity=20)
    reports = [Completed(task.task_id, task.fence, "done") for task in (await store.claim("w", 20)).tasks]
    assert set(await store.complete("w", *reports)) <= {State.COMPLETED}
    states = {(await store.get(task_id)).status for task_id in TASKS.keys() - {IN_2100}}
    return states == {State.COMPLETED}


async def test_a_data_folder_is_opened_with_all_that_is_in_it(settings: Settings) -> None:
    async with gateway_store(settings) as store:
        assert {task.task_id for task in (await store.list_tasks(limit=1000)).tasks} == set(TASKS)
        for task_id, expected in TASKS.items():
            task = await store.get(task_id)
            assert content_of(task) == {name: expected[name] for name in content_of(task)}
            if expected["status"] in TERMINAL:
                assert (task.status, task.result) == (expected["status"], expected["result"])
            else:
                assert task.status not in TERMINAL
        far = await store.get(IN_2100)
        assert (far.status, far.run_at) == (State.DELAYED, 4_102_444_800_000)
        job = await store.jobs.get(EXPECTED["job_id"])
        assert (job.status, job.current_step_index) == (JobStatus.RUNNING, 1)
        assert await examine(store.connection) == []


async def test_its_tasks_run_also_those_of_a_worker_that_is_gone(settings: Settings) -> None:
    async with gateway_store(settings) as store:
        await wait_until(lambda: run_what_waits(store))
    async with gateway_store(settings) as store:
        for task_id in TASKS.keys() - {IN_2100}:
            assert (await store.get(task_id)).status is State.COMPLETED
        assert (await store.jobs.get(EXPECTED["job_id"])).status is JobStatus.COMPLETED
        assert (await store.get(IN_2100)).status is State.DELAYED
        assert {limit.active for limit in await store.limits.all()} == {0}
        assert await examine(store.connection) == []
