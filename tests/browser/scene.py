"""A gateway with something on every page, and a hostile text in every field that takes one."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.browser.hostile import NAME_LIKE, TEXTS
from tests.browser.person import WorkerOverHttp

JSON = {"content-type": "application/json"}


def sent(api: httpx.Client, method: str, path: str, body: Any = None, reason: str = "") -> dict[str, Any]:
    answer = api.request(method, path, json=body, headers={"x-reason": reason} if reason else {})
    assert answer.status_code < 300, answer.text
    known: dict[str, Any] = answer.json()
    return known


def submit(api: httpx.Client, task_type: str = "draw", **options: Any) -> str:
    task_id: str = sent(api, "POST", "/api/v1/tasks", {"task_type": task_type, **options})["task_id"]
    return task_id


def fail_one(api: httpx.Client, worker: WorkerOverHttp, task_type: str = "broken", **error: Any) -> str:
    """A dead letter."""
    task_id = submit(api, task_type, parameters={"width": 1})
    (task,) = [one for one in worker.take() if one["task_id"] == task_id]
    worker.fail(task, **{"message": "no", "code": "wrong", **error})
    return task_id


@dataclass
class Scene:
    job: str
    dead: str
    worker: str


def fill(api: httpx.Client, worker: WorkerOverHttp) -> Scene:
    """Some of everything. The worker holds a task and the first step of a job."""
    printable = [text for text in TEXTS if text.isprintable()]
    sent(api, "PUT", "/api/v1/limits/gpu", {"limit": 2}, printable[0])
    sent(api, "PUT", "/api/v1/limits/openai", {"rate": "60/min"}, printable[1])
    sent(api, "PUT", f"/api/v1/limits/{NAME_LIKE}", {"limit": 40})
    sent(api, "PUT", "/api/v1/limits/stripe", {"limit": 1})
    sent(api, "PUT", "/api/v1/limits/stripe", {"paused": True}, "maintenance")
    sent(api, "POST", "/api/v1/limits/gpu/leases", {"lease_seconds": 600, "holder": printable[2]})
    sent(
        api,
        "PUT",
        "/internal/declarations",
        {"types": {"draw": {}, "upscale": {}}, "pipelines": {"poster": ["draw", "upscale"]}},
    )
    sent(api, "POST", "/internal/crons/report", {"schedule": "30 2 * * *", "timezone": "Europe/Berlin"})
    sent(api, "POST", f"/internal/crons/{NAME_LIKE}")
    sent(api, "PUT", "/api/v1/task-types/chat", {"paused": True}, printable[3])
    dead = [
        fail_one(api, worker, message=text, code=text[:50], traceback=text)
        for text in TEXTS
        if "\0" not in text
    ]
    job = sent(
        api,
        "POST",
        "/api/v1/jobs",
        {"feature_name": "poster", "user_id": printable[4], "input_data": {printable[0]: printable[1]}},
    )
    submit(api, "draw", limits={"gpu": 1}, user_id=printable[5])
    (step,) = [task for task in worker.take() if task["job_id"] == job["job_id"]]
    worker.progress(step, fraction=0.5, message=printable[7], output=[printable[8]])
    worker.complete(step, {printable[8]: printable[7]})  # what the next step gets
    worker.take()
    for text in printable:
        submit(api, "draw", limits={"gpu": 1}, user_id=text, priority="low")
    submit(api, "chat", user_id="ann", priority="high")
    submit(api, NAME_LIKE, delay_seconds=600)
    WorkerOverHttp(
        api, name=printable[6], version=printable[9][:50], capabilities=[NAME_LIKE], capacity=3, reserve=1
    )
    return Scene(job["job_id"], dead[0], worker.id)
