"""Pictures of Asymptote source, and conversations with Asymptote, in a sandbox."""

import asyncio
import base64

from sandbox import Kind, Limits, Run, conversing, drawing

from fairlead import Context, Fairlead

SECONDS = 30  # of the longest tier

fl = Fairlead("http://127.0.0.1:8000")


@fl.task(timeout=2 * SECONDS, max_retries=0)  # its tier ends it earlier
async def picture(
    source: str, ctx: Context, kind: Kind = "svg", line_by_line: bool = False
) -> dict[str, str | None]:
    async with drawing(kind, Limits(cpu_seconds=SECONDS), line_by_line=line_by_line) as run:
        # what the source has written until then is the result, which counts as truncated
        ctx.on_deadline(lambda _: run.stop("its time was over") if ctx.truncating else None)
        drawn = await run.drawn(source)
    return {
        "picture": base64.b64encode(drawn.picture).decode() or None,
        "said": drawn.said,
        "stopped": drawn.stopped or None,
    }


@fl.task(timeout=600, max_retries=0)
async def shell(ctx: Context) -> dict[str, str | None]:
    """Each frame is a line for Asymptote; what it answers is emitted piece by piece."""
    async with conversing(Limits(cpu_seconds=SECONDS)) as run, asyncio.TaskGroup() as group:
        telling = group.create_task(tell_all(run, ctx))
        async for answer in run.answers():
            await ctx.emit(answer)
        telling.cancel()
    return {"stopped": run.stopped or None}


async def tell_all(run: Run, ctx: Context) -> None:
    async for line in ctx.frames():
        await run.tell(str(line))
