"""No request blocks the event loop for long, whatever it sends or requests: all others wait behind it."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from tests.api.lagging import Lags, gateway, http, lags
from tests.api.requests import TASKS, HttpWorker, good

__all__ = ["gateway", "http", "lags"]

Shape = Callable[[int], Any]
#: JSON of about this size: a document that is cheap to send is not always cheap to parse.
SHAPES: dict[str, Shape] = {
    "text": lambda size: "x" * size,
    "not ascii": lambda size: "\u20ac" * (size // 3),
    "numbers": lambda size: [1] * (size // 2),
    "fractions": lambda size: [1.5] * (size // 4),
    "lists": lambda size: [[]] * (size // 3),
    "objects": lambda size: [{}] * (size // 3),
    "names": lambda size: {f"k{n:06}": n for n in range(size // 18)},
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
#: Those that take longest: the ways to parse and to write JSON are the same for every request.
SLOWEST = ("not ascii", "lists", "names")
slowest_shapes = pytest.mark.parametrize("shape", [SHAPES[name] for name in SLOWEST], ids=SLOWEST)

LARGE, BATCH = 250 * 1024, 14 * 1024 * 1024


async def post(http: httpx.AsyncClient, path: str, body: Any, status: int) -> dict[str, Any]:
    content = msgspec.json.encode(body)
    return good(await http.post(path, content=content, headers={"content-type": "application/json"}), status)


async def leased(http: httpx.AsyncClient, count: int) -> tuple[HttpWorker, list[dict[str, Any]]]:
    """A worker that holds this number of tasks."""
    await post(http, f"{TASKS}/batch", {"tasks": [{"task_type": "echo"}] * count}, 201)
    worker = await HttpWorker.register(http, capacity=count)
    tasks: list[dict[str, Any]] = []
    while len(tasks) < count:
        tasks += await worker.poll(count)
    return worker, tasks


@every_shape
async def test_one_large_task(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    body = {"task_type": "echo", "parameters": {"x": shape(LARGE)}}

    async def submit_and_get() -> None:
        task_id = (await post(http, TASKS, body, 201))["task_id"]
        good(await http.get(f"{TASKS}/{task_id}"))

    await lags.check(submit_and_get)


@every_shape
async def test_a_large_batch_of_large_tasks(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    await check_batch(http, lags, shape, 60)


@slowest_shapes
async def test_a_large_batch_of_small_tasks(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    await check_batch(http, lags, shape, 1000)


async def check_batch(http: httpx.AsyncClient, lags: Lags, shape: Shape, count: int) -> None:
    body = {"tasks": [{"task_type": "echo", "parameters": {"x": shape(BATCH // count)}}] * count}

    async def submit() -> None:
        answers = (await post(http, f"{TASKS}/batch", body, 201))["tasks"]
        assert [one["status"] for one in answers] == ["queued"] * count

    await lags.check(submit)


@slowest_shapes
async def test_many_large_results(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    async def report() -> None:
        worker, tasks = await leased(http, 56)
        results = [
            {"task_id": one["task_id"], "status": "completed", "fence": one["fence"], "result": shape(LARGE)}
            for one in tasks
        ]
        answer = await post(http, f"{worker.path}/result", {"results": results}, 200)
        assert [one["status"] for one in answer["results"]] == ["completed"] * 56

    await lags.check(report)


@slowest_shapes
async def test_much_output(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    worker, tasks = await leased(http, 7)
    chunk = shape(60 * 1024)
    reports = [{"task_id": one["task_id"], "fence": one["fence"], "output": [chunk] * 34} for one in tasks]

    async def say() -> None:
        answers = await post(http, f"{worker.path}/progress", {"reports": reports}, 200)
        assert [one["accepted"] for one in answers["results"]] == [True] * 7

    await lags.check(say)
    await lags.check(lambda: http.get(f"{TASKS}/{tasks[0]['task_id']}/outputs"))


@slowest_shapes
async def test_polls_and_lists_of_large_tasks(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    body = {"tasks": [{"task_type": "echo", "parameters": {"x": shape(LARGE)}}] * 30}
    await post(http, f"{TASKS}/batch", body, 201)
    worker = await HttpWorker.register(http, capacity=30)

    async def poll() -> None:
        assert await worker.poll(10)

    await lags.check(poll)
    await lags.check(lambda: http.get(TASKS, params={"limit": 1000}))
