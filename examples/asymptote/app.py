"""Pictures of Asymptote source, drawn in a sandbox."""

import base64

from sandbox import Kind, Limits, drawing

from fairlead import Fairlead

SECONDS = 30

fl = Fairlead("http://127.0.0.1:8000")


@fl.task(timeout=SECONDS, max_retries=0)  # the same source takes the same time again
async def picture(source: str, kind: Kind = "svg") -> dict[str, str | None]:
    async with drawing(kind, Limits(cpu_seconds=SECONDS)) as run:
        drawn = await run.drawn(source)
    return {
        "picture": base64.b64encode(drawn.picture).decode() or None,
        "said": drawn.said,
        "stopped": drawn.stopped or None,
    }
