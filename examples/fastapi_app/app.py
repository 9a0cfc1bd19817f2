"""Fairlead inside a FastAPI application: requests submit tasks, a worker runs them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from fairlead import Fairlead, UnknownTask

fl = Fairlead()


@fl.task(max_concurrent=2, timeout=60)
async def resize(width: int) -> dict[str, int]:
    await asyncio.sleep(0.1)  # here you would do the work
    return {"width": width}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with fl:  # connected while the application runs
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/resizes", status_code=202)
async def submit(width: int, user: str | None = None) -> dict[str, str]:
    task = await resize.submit(width=width, user_id=user)
    return {"task_id": task.task_id}


@app.get("/resizes/{task_id}")
async def show(task_id: str) -> dict[str, Any]:
    task = await (await fl.get(task_id)).get()
    return {"status": task.status, "result": task.result}


@app.get("/resizes/{task_id}/result")
async def result(task_id: str) -> dict[str, int]:
    """Waits for the result, but no longer than a client waits for a response."""
    return await (await fl.get(task_id)).result(timeout=25)


@app.exception_handler(UnknownTask)
async def unknown(*_: object) -> JSONResponse:
    return JSONResponse({"detail": "There is no such task."}, 404)


@app.exception_handler(TimeoutError)
async def not_yet(*_: object) -> JSONResponse:
    return JSONResponse({"detail": "There is no result yet: ask again."}, 504)
