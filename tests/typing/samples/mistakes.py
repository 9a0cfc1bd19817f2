"""Every marked line is wrong. The mark names the error of mypy and the one of pyright."""

from fairlead import Context, Fairlead
from fairlead.testing import run_inline

fl = Fairlead()


@fl.task
async def draw(ctx: Context, prompt: str, *, steps: int = 20) -> dict[str, int]:
    return {prompt: steps}


@fl.task
def count(to: int) -> int:
    return to


async def parameters() -> None:
    await draw.submit()  # wrong: call-overload, reportCallIssue
    await draw.submit(5)  # wrong: call-overload, reportArgumentType
    await draw.submit("a robot", stepz=4)  # wrong: call-overload, reportCallIssue
    await draw.submit("a robot", ctx=None)  # wrong: call-overload, reportCallIssue
    await draw.options(priority="high").submit(5)  # wrong: call-overload, reportArgumentType
    count.new("5")  # wrong: call-overload, reportArgumentType
    await run_inline(count, "5")  # wrong: call-overload, reportArgumentType


async def options() -> None:
    await count.submit(5, priority="urgent")  # wrong: call-overload, reportArgumentType
    await count.submit(5, run_at=3)  # wrong: call-overload, reportArgumentType
    count.options(priority="urgent")  # wrong: arg-type, reportArgumentType
    count.options(colour="red")  # wrong: call-arg, reportCallIssue
    await fl.submit("count", {"to": 5}, priorty="high")  # wrong: call-arg, reportCallIssue
    await fl.submit("count", {"to": 5}, priority="urgent")  # wrong: arg-type, reportArgumentType
    await fl.run("story", {}, prioritty="high")  # wrong: call-arg, reportCallIssue
    fl.worker(capasity=3)  # wrong: call-arg, reportCallIssue
    await fl.list_tasks(limit="3")  # wrong: arg-type, reportArgumentType
    await fl.list_jobs(pipeline="story")  # wrong: call-arg, reportCallIssue
    fl.worker(capacity="3")  # wrong: arg-type, reportArgumentType
    fl.acquire("gpu", priority="urgent")  # wrong: arg-type, reportArgumentType
    fl.pipeline("story", [3])  # wrong: list-item, reportArgumentType
    fl.cron("* * * * *", colour="red")  # wrong: call-arg, reportCallIssue
    fl.cron("* * * * *", missed="some")  # wrong: arg-type, reportArgumentType
    fl.task("draw", run_in="cloud")  # wrong: call-overload, reportArgumentType


async def results(ctx: Context) -> None:
    text: str = await (await count.submit(5)).result()  # wrong: assignment, reportAssignmentType
    count("4")  # wrong: arg-type, reportArgumentType
    await draw(ctx, 5)  # wrong: arg-type, reportArgumentType
    print(text)
