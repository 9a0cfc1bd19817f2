"""A job whose steps answered much is read without holding up others."""

import httpx

from tests.api.lagging import Lags, gateway, http, lags
from tests.api.requests import HttpWorker, good
from tests.api.test_loop_lag import Shape, post, slowest_shapes

__all__ = ["gateway", "http", "lags"]

STEPS = ["a", "b", "c", "d"]


@slowest_shapes
async def test_a_job_with_a_large_context(http: httpx.AsyncClient, lags: Lags, shape: Shape) -> None:
    declared = {"types": {name: {} for name in STEPS}, "pipelines": {"p": STEPS}}
    good(await http.put("/internal/declarations", json=declared))
    body = {"feature_name": "p", "input_data": {"x": shape(200 * 1024)}}
    worker = await HttpWorker.register(http, capacity=1)

    async def run() -> str:
        job_id: str = (await post(http, "/api/v1/jobs", body, 201))["job_id"]
        for _ in STEPS:
            task = await worker.poll_one()
            report = {"task_id": task["task_id"], "status": "completed", "fence": task["fence"]}
            await post(http, f"{worker.path}/result", {**report, "result": {"x": shape(240 * 1024)}}, 200)
        return job_id

    await lags.check(run)
    address = f"/api/v1/jobs/{await run()}"
    answer = await http.get(address)
    assert good(answer)["status"] == "COMPLETED"
    assert 900 * 1024 < len(answer.content) < 1536 * 1024
    await lags.check(lambda: http.get(address))
    page = good(await http.get("/api/v1/jobs"))
    assert len(page["jobs"]) == 1 and page["next_cursor"], "a page of large jobs ends early"
    await lags.check(lambda: http.get("/api/v1/jobs"))


async def test_many_small_jobs_on_a_page(http: httpx.AsyncClient, lags: Lags) -> None:
    declared = {"types": {name: {} for name in STEPS}, "pipelines": {"p": STEPS}}
    good(await http.put("/internal/declarations", json=declared))
    for _ in range(1100):
        good(await http.post("/api/v1/jobs", json={"feature_name": "p"}), 201)
    page = good(await http.get("/api/v1/jobs", params={"limit": 1000}))
    assert len(page["jobs"]) > 100 and page["next_cursor"]
    await lags.check(lambda: http.get("/api/v1/jobs", params={"limit": 1000}))
