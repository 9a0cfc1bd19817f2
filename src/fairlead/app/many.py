"""Submitting many tasks at once, and the error that says which of them were refused."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Self

from fairlead.app.handle import TaskHandle
from fairlead.backend import Backend
from fairlead.errors import FairleadError
from fairlead.model.task import MOST_PER_CALL, NewTask, Submitted

PER_CALL = 200  # tasks of many: as many as one act of the store takes
MOST_NAMED = 3

Answer = TaskHandle[Any] | FairleadError


class NotAllSubmitted(FairleadError, ExceptionGroup[FairleadError]):
    """Some of many tasks could not be submitted.

    `errors` has their errors and `handles` the handles of the others, by the place of the task. It is a group
    of the errors, so `except* QueueFull` works.
    """

    code = "not_all_submitted"

    def __new__(cls, answers: Sequence[Any]) -> Self:
        errors = {place: one for place, one in enumerate(answers) if isinstance(one, FairleadError)}
        named = [f"{place}: {error}" for place, error in [*errors.items()][:MOST_NAMED]]
        more = [f"and {len(errors) - MOST_NAMED} more"] if len(errors) > MOST_NAMED else []
        message = (
            f"{len(errors)} of {len(answers)} tasks could not be submitted ({'; '.join([*named, *more])})"
        )
        self = super().__new__(cls, message, [*errors.values()])
        self.errors = errors
        self.handles = {place: one for place, one in enumerate(answers) if place not in errors}
        return self

    def __init__(self, answers: Sequence[Any]) -> None:
        self.args = (answers,)
        self.errors: dict[int, FairleadError]
        self.handles: dict[int, Any]  # of this API, or of the blocking one


async def submit_all(backend: Backend, tasks: Sequence[NewTask]) -> list[Answer]:
    """The answers in order. An error that stops everything is raised if no task was accepted before it."""
    # The store answers calls in order, so the next is made ready while it works on this one; a gateway
    # may take two calls in any order.
    size, most_under_way = (MOST_PER_CALL, 1) if backend.settings.engine.is_gateway else (PER_CALL, 2)
    waiting = deque(range(0, len(tasks), size))
    answers: list[Submitted | FairleadError] = []
    under_way: deque[asyncio.Task[list[Submitted | FairleadError]]] = deque()
    try:
        while waiting or under_way:
            if waiting:
                start = waiting.popleft()
                under_way.append(asyncio.create_task(backend.submit(*tasks[start : start + size])))
                await asyncio.sleep(0)  # it is sent now
            if len(under_way) == most_under_way or not waiting:
                answers += await under_way.popleft()
    except FairleadError as problem:
        if not any(isinstance(one, Submitted) for one in answers):
            raise
        answers += [problem] * (len(tasks) - len(answers))
    finally:
        for call in under_way:
            call.cancel()
    return [one if isinstance(one, FairleadError) else TaskHandle(backend, one) for one in answers]
