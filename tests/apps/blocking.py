"""An app of the blocking API: what a script or a Flask program would define."""

import time

from fairlead import Context, PermanentError
from fairlead.sync import Fairlead

fl = Fairlead()
fl.limit("gpu", 1)


@fl.task
def double(number: int) -> int:
    return 2 * number


@fl.task(limits={"gpu": 1})
async def draw(prompt: str) -> str:
    return f"a picture of {prompt}"


@fl.task
def render(frames: int, ctx: Context) -> int:
    for frame in range(frames):
        ctx.progress(frame / frames)
        ctx.emit({"frame": frame})
        time.sleep(0.001)
    return frames


@fl.task
def refuse() -> None:
    raise PermanentError("the account is empty")


@fl.task
def double_twice(number: int) -> int:
    """Submits another task, from the thread in which a worker runs it."""
    return 2 * double.submit(number).result(timeout=30)


waiting: list[str] = []  # tasks
stopped: list[str] = []


@fl.task
def wait_for_nobody(ctx: Context) -> None:
    """Waits for a task that nobody runs."""
    try:
        task = fl.submit("nobody")
        waiting.append(ctx.task_id)
        task.result()
    finally:
        stopped.append(ctx.task_id)


fl.pipeline("doubled", [double])
