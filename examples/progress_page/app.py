"""A task that reports its progress, and a page that shows it live."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from fairlead import Context, Fairlead, UnknownTask

fl = Fairlead()


@fl.task
async def render(frames: int, ctx: Context) -> str:
    for frame in range(frames):
        ctx.progress(frame / frames, f"frame {frame + 1} of {frames}")
        await asyncio.sleep(0.2)  # here you would render it
    return f"{frames} frames"


async def page(_: Request) -> FileResponse:
    return FileResponse(Path(__file__).with_name("page.html"))


async def start(_: Request) -> JSONResponse:
    task = await render.submit(frames=20)
    return JSONResponse({"task_id": task.task_id}, 201)


async def events(request: Request) -> StreamingResponse:
    """Server-Sent Events: what the page shows, whenever it changes."""
    task = await fl.get(request.path_params["task_id"])

    async def messages() -> AsyncIterator[str]:
        async for message in task.watch():
            shown = {name: message[name] for name in ("type", "fraction", "message") if name in message}
            yield f"data: {json.dumps(shown)}\n\n"

    return StreamingResponse(messages(), media_type="text/event-stream")


async def no_such_task(*_: object) -> JSONResponse:
    return JSONResponse({"detail": "There is no such task."}, 404)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with fl:
        yield


routes = [
    Route("/", page),
    Route("/renders", start, methods=["POST"]),
    Route("/renders/{task_id}/events", events),
]
web = Starlette(routes=routes, lifespan=lifespan, exception_handlers={UnknownTask: no_such_task})

if __name__ == "__main__":
    uvicorn.run(web, port=8080)
