"""Jobs for the tests of the store, and what its worker `w` does with their steps."""

from typing import Any

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.conftest import Clock

ENHANCE, CHAT, IMAGE = NewStep("enhance", "enhance"), NewStep("chat", "chat"), NewStep("image", "image")


def job(*stages: NewStep | tuple[NewStep, ...], **options: Any) -> NewJob:
    plan = [stage if isinstance(stage, tuple) else (stage,) for stage in stages or (ENHANCE, CHAT)]
    return NewJob(feature_name="story", stages=plan, **{"input_data": {"prompt": "a robot"}, **options})


async def later(store: Store, clock: Clock, seconds: float) -> None:
    """Time passes; the worker reports during it."""
    clock.pass_seconds(seconds)
    await store.workers.register("w", capacity=10)


async def complete(store: Store, task: Task, result: Any = None) -> None:
    assert await store.complete("w", Completed(task.task_id, task.fence, result)) == [State.COMPLETED]


async def fail(store: Store, task: Task, *, retriable: bool = False) -> State | errors.FairleadError:
    return (await store.fail("w", Failed(task.task_id, task.fence, "oops", "it broke", retriable)))[0]
