"""A run that will never be reported is logged once, by the caller of the act that ended it."""

import logging
from typing import Any

import pytest

from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
async def running(store: Store) -> Task:
    await store.workers.register("w", capacity=5)
    await store.submit_one(new(timeout_seconds=3600, max_retries=0, trace_id=TRACE))
    return await claim_one(store)


def failures(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [
        {**record.facts, "level": record.levelname}  # type: ignore[attr-defined]
        for record in caplog.records
        if getattr(record, "event", "") == "task_failed"
    ]


def facts(task: Task, **more: Any) -> dict[str, Any]:
    known = {
        "task": task.task_id,
        "type": "echo",
        "attempt": task.attempt,
        "fence": task.fence,
        "trace": TRACE,
    }
    return known | {"worker": "w", "code": "worker_lost", "level": "WARNING", "status": "queued"} | more


async def test_a_run_of_a_worker_that_died_is_logged(
    store: Store, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    await store.expire("w")
    assert failures(caplog) == [facts(running)]
    await store.workers.register("w", capacity=5)
    again = await claim_one(store)
    await store.expire("w")
    assert failures(caplog)[1:] == [facts(again, attempt=2)]
    await store.workers.register("w", capacity=5)
    last = await claim_one(store)
    await store.expire("w")
    assert failures(caplog)[2:] == [facts(last, attempt=3, status="dead_letter", level="ERROR")]


@pytest.mark.parametrize("act", ["expire", "claim"])
async def test_a_run_of_a_silent_worker_is_logged_by_every_act_that_may_notice_it(
    store: Store, clock: Clock, running: Task, caplog: pytest.LogCaptureFixture, act: str
) -> None:
    clock.pass_ms(store.settings.lease_ms + 1_001)
    await store.workers.register("v", capacity=5, task_types=["other"])
    assert failures(caplog) == []
    await (store.claim("v") if act == "claim" else store.expire())
    assert (await store.get(running.task_id)).status is State.QUEUED
    assert failures(caplog) == [facts(running)]
    await store.expire()
    assert len(failures(caplog)) == 1


async def test_a_run_past_its_deadline_is_logged(
    store: Store, clock: Clock, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    clock.pass_ms(3_600_000 + store.settings.lease_ms + 1_001)
    await store.expire()
    assert failures(caplog) == [facts(running, code="timeout", status="dead_letter", level="ERROR")]


async def test_not_of_one_that_was_cancelled(
    store: Store, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    await store.cancel(running.task_id)
    await store.expire("w")
    assert failures(caplog) == []


async def test_nothing_is_logged_below_the_level(
    store: Store, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "fairlead")
    await store.expire("w")
    assert failures(caplog) == []
