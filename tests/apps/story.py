"""A pipeline of the tour: a story is outlined, then drawn and narrated at the same time, and bound."""

from typing import Any

from fairlead import Context, Fairlead, Parallel, PermanentError

fl = Fairlead()
fl.limit("printer", 1)


@fl.task
async def outline(topic: str) -> dict[str, Any]:
    if topic == "nothing":
        raise PermanentError("there is nothing to tell")
    return {"chapters": [f"{topic} sets out", f"{topic} comes home"]}


@fl.task
async def draw(chapters: list[str]) -> dict[str, Any]:
    return {"pictures": [f"a picture of how {chapter}" for chapter in chapters]}


@fl.task
async def narrate(chapters: list[str], language: str = "en") -> dict[str, Any]:
    return {"audio": f"{len(chapters)} chapters.{language}.ogg"}


@fl.task(limits={"printer": 1})
async def bind(pictures: list[str], audio: str, ctx: Context) -> str:
    ctx.progress(0.5, "glueing")
    return f"a book of {len(pictures)} pages, with {audio}"


fl.pipeline("story", [outline, Parallel(draw, narrate), bind])
