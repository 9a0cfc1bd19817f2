"""Handlers of all kinds, with a context in every place, and the types that come out of them."""

from datetime import UTC, datetime
from typing import Any, TypedDict, assert_type

from fairlead import Context, Fairlead, FairleadError, TaskHandle
from fairlead.testing import Inline, run_inline

fl = Fairlead()


class Picture(TypedDict):
    url: str


@fl.task
async def draw(ctx: Context, prompt: str, *, steps: int = 20) -> dict[str, int]:
    return {prompt: steps}


@fl.task("count", max_concurrent=3, run_in="process")
def count(to: int, user_id: str = "") -> int:
    return to


@fl.task
async def paint(prompt: str, ctx: Context) -> Picture:
    return {"url": prompt}


@fl.task(timeout=5)
def mix(colour: str, more: int, ctx: Context) -> list[str]:
    return [colour] * more


@fl.task
async def maybe(ctx: Context | None = None, times: int = 1) -> None: ...


@fl.task
def any_of(first: int, **rest: str) -> None: ...


@fl.task
async def anything(value: Any, times: int = 1) -> Any:
    return [value] * times


@fl.task
async def loose(values: dict[str, Any]) -> dict[str, Any]:
    return values


@fl.task
async def describe(ctx: Context, facts: dict[str, Any]) -> str:
    return str(facts)


@fl.cron("* * * * *", priority="low", missed="all", timeout=5)
async def tidy() -> None: ...


@fl.cron("0 3 * * *", parameters={"to": 3}, user_id="ann")
@fl.task
def nightly(to: int, tick: datetime | None = None) -> int:
    return to


async def submits() -> None:
    assert_type(await draw.submit("a robot", steps=4), TaskHandle[dict[str, int]])
    assert_type(await draw.submit(prompt="a robot"), TaskHandle[dict[str, int]])
    assert_type(await count.submit(5, user_id="a parameter"), TaskHandle[int])
    assert_type(await paint.submit(prompt="a robot"), TaskHandle[Picture])
    assert_type(await mix.submit("red", more=2), TaskHandle[list[str]])
    assert_type(await maybe.submit(times=3), TaskHandle[None])
    assert_type(await any_of.submit(1, colour="red"), TaskHandle[None])
    assert_type(await anything.submit(1, 2), TaskHandle[Any])
    assert_type(await loose.submit({"a": 1}), TaskHandle[dict[str, Any]])
    await describe.submit({"a": 1})
    assert_type(await tidy.submit(), TaskHandle[None])
    assert_type(await nightly.submit(3), TaskHandle[int])


async def options() -> None:
    later = datetime.now(UTC)
    assert_type(await draw.submit("a robot", priority="high", user_id="ann"), TaskHandle[dict[str, int]])
    assert_type(await paint.submit(prompt="a robot", run_at=later, limits={"gpu": 2}), TaskHandle[Picture])
    await any_of.submit(1, colour="red", idempotency_key="k")
    await tidy.submit(delay_seconds=3, tenant=None)
    urgent = draw.options(priority="high", max_retries=2, required_capabilities=["cuda"])
    assert_type(await urgent.submit("a robot", steps=4), TaskHandle[dict[str, int]])
    await fl.submit("draw", {"prompt": "a robot"}, priority="high", delay_seconds=3)
    await fl.run("story", {"topic": "Bo"}, priority="low", user_id=None, timeout=3)
    assert_type(await fl.submit_many([draw.new("a robot")]), list[TaskHandle[Any]])
    answers = await fl.submit_many([count.new(3, max_retries=2)], return_errors=True)
    assert_type(answers, list[TaskHandle[Any] | FairleadError])
    async with fl.worker(capacity=3, capabilities=["cuda"], grace=0) as worker:
        print(worker.running)


async def calls(ctx: Context) -> None:
    assert_type(await draw(ctx, "a robot"), dict[str, int])
    assert_type(count(4), int)
    assert_type(await maybe(), None)
    assert_type(await run_inline(draw, "a robot", steps=3), dict[str, int])
    assert_type(await run_inline(count, 3, said=Inline()), int)
