"""Services run by an ordinary worker: limits, retries, cancellation, draining."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import run
from fairlead.errors import InvalidInput
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from fairlead.worker.services import calls_at_once, running_services, service_handlers
from tests.pipeline.servers import GOOD, RawService, Request, breaks_off, hangs, says
from tests.pipeline.tasks import JOB, report_by, step, success
from tests.servers import Server
from tests.waiting import wait_until
from tests.workers import WorkerLauncher


@pytest.fixture
async def calling(live_store: Store, settings: Settings) -> AsyncIterator[None]:
    async with running_services(live_store, settings):
        yield


async def submit(store: Store, name: str = "enhancer", **options: Any) -> str:
    new = NewTask(task_type=f"service:{name}", parameters={"prompt": "a city"}, **options)
    return (await store.submit_one(new)).task_id


async def ended(store: Store, task_id: str) -> Task:
    async def has_ended() -> bool:
        return (await store.get(task_id)).completed_at is not None

    await wait_until(has_ended)
    return await store.get(task_id)


@pytest.mark.usefixtures("calling")
async def test_a_call_is_a_task_with_the_answer_as_its_result(live_store: Store, service: RawService) -> None:
    task = await ended(live_store, await submit(live_store, trace_id="4bf92f3577b34da6a3ce929d0e0e4736"))
    assert (task.status, task.result, task.limits) == (State.COMPLETED, GOOD, {"service:enhancer": 1})
    (request,) = service.requests
    assert request.body["payload"] == {"params": {"prompt": "a city"}, "context": {}}
    assert request.body["meta"] == {
        "job_id": None,
        "step_index": 0,
        "service_name": "enhancer",
        "attempt": 1,
    }
    assert request.headers["idempotency-key"] == task.task_id
    assert request.headers["traceparent"].startswith("00-4bf92f3577b34da6a3ce929d0e0e4736-")


async def test_a_step_of_a_job_sends_the_id_of_its_job_to_the_service(
    service: RawService, settings: Settings
) -> None:
    context = {"step_0_x": success({"text": "short"})}
    async with service_handlers(settings.services) as handlers:
        report = await report_by(handlers, step("service:enhancer", {"prompt": "a"}, context, retry_count=1))
    assert report.result == GOOD  # type: ignore[union-attr]
    (request,) = service.requests
    assert request.body == {
        "meta": {"job_id": JOB, "step_index": 1, "service_name": "enhancer", "attempt": 2},
        "payload": {"params": {"prompt": "a"}, "context": context},
    }
    assert request.headers["idempotency-key"] == f"{JOB}:1"
    assert request.headers["x-fairlead-fence"] == "17"


@pytest.mark.usefixtures("calling")
async def test_no_more_calls_at_once_than_the_limit(live_store: Store, service: RawService) -> None:
    at_once, most = 0, 0
    three = asyncio.Event()

    async def counts(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if most == 3:
            three.set()
        await three.wait()
        await asyncio.sleep(0.02)
        at_once -= 1
        await says(GOOD)(request, writer)

    service.reply = counts
    tasks = [await submit(live_store) for _ in range(20)]
    assert {(await ended(live_store, task)).status for task in tasks} == {State.COMPLETED}
    assert most == 3


@pytest.mark.usefixtures("calling")
async def test_the_next_try_has_the_same_key_and_a_larger_fence(
    live_store: Store, service: RawService
) -> None:
    replies = iter([says("busy", "503 Service Unavailable"), breaks_off, says(GOOD)])

    async def one_after_the_other(request: Request, writer: asyncio.StreamWriter) -> None:
        await next(replies)(request, writer)

    service.reply = one_after_the_other
    task = await ended(live_store, await submit(live_store))
    assert (task.status, task.result, task.retry_count) == (State.COMPLETED, GOOD, 2)
    assert [request.body["meta"]["attempt"] for request in service.requests] == [1, 2, 3]
    assert len({request.headers["idempotency-key"] for request in service.requests}) == 1
    fences = [int(request.headers["x-fairlead-fence"]) for request in service.requests]
    assert fences == sorted(set(fences))


@pytest.mark.usefixtures("calling")
async def test_the_number_of_attempts_is_bounded(live_store: Store, service: RawService) -> None:
    service.reply = says("busy", "503 Service Unavailable")
    task = await ended(live_store, await submit(live_store))
    assert (task.status, len(service.requests)) == (State.DEAD_LETTER, 3)
    assert task.error and (task.error.code, task.error.retriable) == ("service_status_503", True)


@pytest.mark.usefixtures("calling")
async def test_a_lasting_problem_is_not_retried(live_store: Store, service: RawService) -> None:
    service.reply = says({"detail": "no prompt"}, "422 Unprocessable")
    task = await ended(live_store, await submit(live_store))
    assert (task.status, len(service.requests)) == (State.FAILED, 1)
    assert task.error and task.error.message == 'the service answered 422: {"detail":"no prompt"}'


@pytest.mark.usefixtures("calling")
async def test_a_service_that_takes_too_long_is_a_timeout(live_store: Store, service: RawService) -> None:
    service.reply = hangs
    task = await ended(live_store, await submit(live_store, "hasty"))
    assert task.error and (task.error.code, task.error.retriable) == ("service_timeout", True)
    await wait_until(lambda: service.gone == 1, because="the connection is closed")


@pytest.mark.usefixtures("calling")
async def test_retry_after_holds_the_next_try_back(live_store: Store, service: RawService) -> None:
    service.reply = says("busy", "503 Service Unavailable", retry_after="100")
    task_id = await submit(live_store)

    async def is_delayed() -> bool:
        return (await live_store.get(task_id)).status is State.DELAYED

    await wait_until(is_delayed)
    task = await live_store.get(task_id)
    assert task.run_at is not None and task.started_at is not None
    assert task.run_at - task.started_at >= 100_000
    await live_store.cancel(task_id)


@pytest.mark.usefixtures("calling")
async def test_a_cancelled_call_closes_its_connection_and_frees_its_unit(
    live_store: Store, service: RawService
) -> None:
    service.reply = hangs
    task_id = await submit(live_store)
    await wait_until(lambda: service.requests)
    await live_store.cancel(task_id)
    await wait_until(lambda: service.gone == 1, because="the connection is closed")
    service.reply = says(GOOD)
    assert (await ended(live_store, await submit(live_store))).status is State.COMPLETED


async def test_calls_under_way_are_returned_when_the_worker_stops(
    live_store: Store, service: RawService, settings: Settings
) -> None:
    service.reply = hangs
    async with running_services(live_store, settings) as worker:
        task_id = await submit(live_store)
        await wait_until(lambda: service.requests)
        worker.drain(0)
    task = await live_store.get(task_id)
    assert (task.status, task.retry_count, task.crash_count) == (State.QUEUED, 0, 0)
    service.reply = says(GOOD)
    async with running_services(live_store, settings):
        assert (await ended(live_store, task_id)).result == GOOD


async def test_a_worker_has_room_for_all_calls_and_keeps_none_back(
    live_store: Store, settings: Settings
) -> None:
    async with running_services(live_store, settings):
        (worker,) = (await live_store.stats()).workers
    assert (worker.capacity, worker.reserve) == (5, 0)


def test_the_room_has_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text("".join(f'[services.s{n}]\nurl = "http://h/"\nlimit = 900\n' for n in range(2)))
    assert calls_at_once(load_settings(path, {}).services) == 1000


async def test_without_services_the_error_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"there are none to call: add \[services.NAME\]"):
        async with service_handlers({}):
            pass


@pytest.fixture
def launcher(live_store: Store, server: Server, config: Path, tmp_path: Path) -> WorkerLauncher:
    """Starts worker processes beside `live_store`."""
    namespace = live_store.connection.keys.namespace
    where = ("--engine", server.url, "--namespace", namespace, "--config", str(config))
    return WorkerLauncher(tmp_path, lambda: where)


async def test_a_separate_process_calls_services(
    launcher: WorkerLauncher, live_store: Store, service: RawService
) -> None:
    async with launcher.workers("--services") as workers:
        assert (await ended(live_store, await submit(live_store))).result == GOOD
        service.reply = hangs
        task_id = await submit(live_store)
        await wait_until(lambda: len(service.requests) == 2)
        await live_store.cancel(task_id)
        await wait_until(lambda: service.gone >= 1, because="the connection is closed")
        assert await workers.end(signal.SIGTERM) == 0


async def test_a_call_whose_process_is_killed_is_made_again(
    launcher: WorkerLauncher, live_store: Store, service: RawService
) -> None:
    service.reply = hangs
    async with launcher.workers("--services") as workers:
        task_id = await submit(live_store)
        await wait_until(lambda: service.requests)
        service.reply = says(GOOD)
        os.kill(workers.children()[0], signal.SIGKILL)
        task = await ended(live_store, task_id)
    assert (task.status, task.result) == (State.COMPLETED, GOOD)
    assert (task.crash_count, task.retry_count) == (1, 0)
    first, second = service.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert int(first.headers["x-fairlead-fence"]) < int(second.headers["x-fairlead-fence"])


@pytest.mark.parametrize("arguments", [["worker"], ["worker", "tasks:fl", "--services"]])
def test_an_app_or_services_but_not_both(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith(
        "fairlead: app: name one, as in `fairlead worker tasks:fl`, or say --serv"
    )
