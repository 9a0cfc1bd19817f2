"""A feed: the state of a task or job as messages, then each change, until it has ended."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import msgspec

from fairlead.backend import retry_while_unavailable
from fairlead.live.messages import (
    Message,
    estimate_message,
    event_message,
    output_message,
    state_messages,
    waiting_messages,
)
from fairlead.model.estimate import Estimate
from fairlead.model.event import Event
from fairlead.model.explanation import Explanation
from fairlead.model.job import ENDED, Job, JobStatus, JobStep
from fairlead.model.priority import Priority
from fairlead.model.states import TERMINAL, WAITING, State
from fairlead.model.task import Task
from fairlead.store.live import Watcher
from fairlead.store.store import Store
from fairlead.times import time_text

CHUNKS_AT_ONCE = 50  # of kept output, so that a slow reader costs little memory

ENDS = {
    JobStatus.COMPLETED: "JOB_COMPLETE",
    JobStatus.FAILED: "JOB_FAILED",
    JobStatus.CANCELLED: "CANCELLED",
}

P = ParamSpec("P")
T = TypeVar("T")


class Feed(ABC):
    def __init__(self, store: Store, watched: str) -> None:
        self._store = store
        self._watched = watched  # the id of the task or job
        self._seen: int | None = None  # the number of the last message that the client has
        self._ended = False
        self._watcher: Watcher

    async def messages(self, after: int | None) -> AsyncGenerator[Message]:
        """First the state; or what is kept since `after` and then the state, unless nothing has changed."""
        self._seen = after
        async with self._store.live.watch(self._watched) as self._watcher:
            async for event in self._watcher:
                if event and event.act == "estimate":
                    yield self._moved(event)
                    continue
                seq, is_last = self._position(event) if event else (0, True)
                following = (self._seen or 0) + 1
                if is_last or seq > following:  # it has ended, or the client misses some
                    async for message in self._catch_up():
                        yield message
                    if self._ended:
                        return
                elif event and seq == following:  # else the state included it
                    self._seen = seq
                    for message in await self._messages_of(event):
                        yield message

    def _moved(self, event: Event) -> Message:
        """The message of an estimate that has moved."""
        estimate = Estimate(event.detail["p50_seconds"], event.detail["p90_seconds"], event.at)
        return estimate_message(self._seen or 0, event.task_id, estimate)

    @abstractmethod
    def _position(self, event: Event) -> tuple[int, bool]:
        """The number of the event, and whether it is the last."""

    @abstractmethod
    def _catch_up(self) -> AsyncGenerator[Message]:
        """What is kept since `_seen`, and the state; updates `_seen` and `_ended`."""

    async def _messages_of(self, event: Event) -> list[Message]:
        """The messages of an event that is not the last: of a task that is queued also why it waits."""
        if event.after is not State.QUEUED or (event.act == "promote" and event.before is State.QUEUED):
            return [event_message(event)]
        explanation = await self._explain(event.task_id)
        return [event_message(event, explanation), *waiting_messages(event.seq, event.at, explanation)]

    async def _state_of(self, task: Task) -> list[Message]:
        if task.status not in WAITING:
            return state_messages(task)
        return state_messages(task, await self._explain(task.task_id))

    def _follow(self, task_id: str, status: str) -> None:
        """The client knows the state, but perhaps not the estimate."""
        if status in WAITING:
            self._watcher.expect(task_id)

    async def _explain(self, task_id: str) -> Explanation:
        """Why the task waits. From then on the feed learns when its estimate moves."""
        explanation = await self._read(self._store.explain, task_id, brief=True)
        if explanation.state in WAITING:
            self._watcher.expect(task_id, explanation.estimate)
        return explanation

    async def _read(self, read: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        return await retry_while_unavailable(self._store, partial(read, *args, **options))


class TaskFeed(Feed):
    def __init__(
        self, store: Store, task_id: str, content: Callable[[msgspec.Raw], Any] = msgspec.Raw
    ) -> None:
        """`content` reads chunks of output, which a gateway passes on as they are."""
        super().__init__(store, task_id)
        self._content = content

    def _position(self, event: Event) -> tuple[int, bool]:
        return event.seq, event.after in TERMINAL

    async def _catch_up(self) -> AsyncGenerator[Message]:
        task = await self._read(self._store.get, self._watched)
        self._ended = task.status in TERMINAL
        after, self._seen = self._seen, task.seq
        if after == task.seq:
            self._follow(task.task_id, task.status)
            return
        if after is not None:
            async for message in self._kept(after, task.seq):
                yield message
        for message in await self._state_of(task):
            yield message

    async def _kept(self, after: int, until: int) -> AsyncGenerator[Message]:
        """Chunks of output. Those newer than the state follow as events, so that the numbers only grow."""
        page = partial(self._store.output_page, most=CHUNKS_AT_ONCE, content=self._content)
        while after < until:
            outputs, _ = await self._read(page, self._watched, after_event=after)
            for output in outputs:
                if output.event_seq <= until:
                    yield output_message(self._watched, output)
            after = outputs[-1].event_seq if outputs else until


class JobFeed(Feed):
    """The messages about the steps of a job, and about the job itself."""

    def __init__(self, store: Store, job: Job) -> None:
        super().__init__(store, job.job_id)
        self._job = job
        self._priority = job.priority

    def _position(self, event: Event) -> tuple[int, bool]:
        assert event.job
        return event.job.seq, event.job.status in ENDED

    async def _catch_up(self) -> AsyncGenerator[Message]:
        """The steps that are done, a promotion that was missed, and the state."""
        job = await self._read(self._store.jobs.get, self._watched)
        self._ended = job.status in ENDED
        after, self._seen, self._job = self._seen, job.seq, job
        if after == job.seq:
            for step in job.current_steps:
                self._follow(step.task_id, step.status)
            return
        for step in job.steps:
            if step.result and step.seq > (after or 0):
                at = step.completed_at or job.last_progress_at  # of a job of an older version
                yield self._of_step("STEP_COMPLETE", step.seq, step, at)
        state = [self._end(job)] if self._ended else await self._open_steps(job)
        for message in (*self._promotion(job.priority, job.seq, job.last_progress_at), *state):
            yield message

    def _end(self, job: Job) -> Message:
        last = self._message(ENDS[job.status], job.seq, job.completed_at or job.last_progress_at)
        if job.status is JobStatus.COMPLETED:
            return last | {"context": job.context}
        error = job.error
        if job.status is JobStatus.CANCELLED or not error:
            return last
        facts = {"code": error.code, "message": error.message, "retryable": error.retryable}
        return last | facts | {"step_index": error.step}

    async def _open_steps(self, job: Job) -> list[Message]:
        messages: list[Message] = []
        for step in job.current_steps:
            task = await self._read(self._store.get, step.task_id)
            if task.status not in TERMINAL:  # else it has just ended, and that event follows
                states = await self._state_of(task)
                messages += [self._for_job(message, job.seq, step) for message in states]
        return messages

    async def _messages_of(self, event: Event) -> list[Message]:
        assert event.job
        step, seq = self._job.steps[event.job.step], event.job.seq
        if event.act == "complete":
            return [self._of_step("STEP_COMPLETE", seq, step, event.at)]
        if event.after in TERMINAL:  # others of its stage still run
            return [self._of_step("STEP_FAILED", seq, step, event.at) | {"code": event.detail.get("code")}]
        if event.act == "promote" and "from" in event.detail:
            return self._promotion(event.job.priority, seq, event.at)
        return [self._for_job(message, seq, step) for message in await super()._messages_of(event)]

    def _moved(self, event: Event) -> Message:
        step = next(step for step in self._job.steps if step.task_id == event.task_id)
        return self._for_job(super()._moved(event), self._seen or 0, step)

    def _promotion(self, new: Priority, seq: int, at: int) -> list[Message]:
        """Nothing if the priority is known: a later step that is as old as its job is no news."""
        old, self._priority = self._priority, new
        if new == old:
            return []
        return [self._message("JOB_PROMOTED", seq, at) | {"old": old.word, "new": new.word}]

    def _for_job(self, message: Message, seq: int, step: JobStep) -> Message:
        """A message about a task as one about its job."""
        return message | self._step_facts(message["type"], step) | {"seq": seq, "job_id": self._job.job_id}

    def _of_step(self, kind: str, seq: int, step: JobStep, at: int) -> Message:
        return self._message(kind, seq, at) | {"task_id": step.task_id} | self._step_facts(kind, step)

    def _step_facts(self, kind: str, step: JobStep) -> Message:
        total = len(self._job.steps)
        facts: Message = {"step_index": step.index, "service_name": step.name, "total_steps": total}
        words = {"STEP_START": "Running", "STEP_COMPLETE": "Completed", "WAITING": "Waiting for"}.get(kind)
        return facts | ({"text": f"{words} {step.name} ({step.index + 1}/{total})"} if words else {})

    def _message(self, kind: str, seq: int, at: int) -> Message:
        return {"type": kind, "seq": seq, "job_id": self._job.job_id, "at": time_text(at)}
