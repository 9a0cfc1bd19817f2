"""Mistakes that checkers do not find, as docs/tasks.md says. Fairlead finds them when the line runs."""

from typing import Any

from fairlead import Context, Fairlead

fl = Fairlead()


@fl.task
def count(to: int) -> int:
    return to


@fl.task
async def paint(prompt: str, ctx: Context) -> str:
    return prompt


@fl.task
async def describe(ctx: Context, name: str) -> dict[str, Any]:
    return {"name": name}


@fl.task
async def late(prompt: str, *, ctx: Context) -> str:
    return prompt


async def mixed() -> None:
    await count.submit("5", priority="high")
    await count.submit(5, priority="urgent", user_id="ann")
    await paint.submit(5)  # the context is not the first parameter
    await describe.submit(5)  # wrong: -, reportArgumentType
    await late.submit("right, but checkers ask for the context")  # wrong: call-overload, reportCallIssue
