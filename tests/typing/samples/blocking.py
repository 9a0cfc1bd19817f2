"""The blocking API: what its calls accept and return. Every marked line is wrong."""

from collections.abc import Iterator
from typing import Any

from fairlead import Context
from fairlead.sync import Fairlead, JobHandle, TaskHandle

fl = Fairlead(namespace="shop")
fl.limit("gpu", 1)


@fl.task(limits={"gpu": 1})
async def draw(ctx: Context, prompt: str) -> dict[str, int]:
    return {prompt: 1}


@fl.task
def count(to: int) -> int:
    return to


fl.pipeline("poster", [draw])
task: TaskHandle[dict[str, int]] = draw.options(priority="high").submit("a robot", user_id="ann")
pixels: dict[str, int] = task.result(timeout=3)
number: int = count.submit(3).result() + count(3)
messages: Iterator[dict[str, Any]] = task.watch()
many: list[TaskHandle[Any]] = fl.submit_many([draw.new("a cat")])
job: JobHandle = fl.submit_job("poster", {"prompt": "a city"}, priority="high")
context: dict[str, Any] = job.result(timeout=3)
sentence: str = job.explain().sentence
waits: list[float | None] = [step.waited_seconds for one in fl.list_jobs(limit=5).jobs for step in one.steps]
ids: list[str] = [one.task_id for one in fl.list_tasks(status="queued").tasks]
with fl, fl.acquire("gpu", wait=3) as lease, fl.worker():
    fence: int = lease.fence

draw.submit(5)  # wrong: call-overload, reportArgumentType
task.result(timeouts=3)  # wrong: call-arg, reportCallIssue
text: str = count.submit(3).result()  # wrong: assignment, reportAssignmentType
fl.limit("gpu", "one")  # wrong: arg-type, reportArgumentType
fl.submit_job("poster", priority="urgent")  # wrong: arg-type, reportArgumentType
fl.acquire("gpu", wat=3)  # wrong: call-arg, reportCallIssue
fl.list_jobs(stats="FAILED")  # wrong: call-arg, reportCallIssue
