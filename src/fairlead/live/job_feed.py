"""All that is told of one job, as messages: what happens to its steps, and to it as a whole."""

from collections.abc import AsyncGenerator
from functools import partial

from fairlead.backend import retry_while_unavailable
from fairlead.live.feed import Feed
from fairlead.live.messages import Message, event_message, state_messages, waiting_messages
from fairlead.model.event import Event
from fairlead.model.job import ENDED, Job, JobStatus, JobStep
from fairlead.model.states import TERMINAL, State
from fairlead.store.store import Store
from fairlead.times import time_text

ENDS = {
    JobStatus.COMPLETED: "JOB_COMPLETE",
    JobStatus.FAILED: "JOB_FAILED",
    JobStatus.CANCELLED: "CANCELLED",
}


class JobFeed(Feed):
    def __init__(self, store: Store, job: Job) -> None:
        super().__init__(store, job.job_id)
        self._job = job
        self._priority = job.priority

    def _place_of(self, event: Event) -> tuple[int, bool]:
        assert event.job
        return event.job.seq, event.job.status in ENDED

    async def _look(self) -> AsyncGenerator[Message]:
        """The steps that are done, and how it is now."""
        job = await retry_while_unavailable(self._store, partial(self._store.jobs.get, self._watched))
        self._ended = job.status in ENDED
        after, self._seen, self._job = self._seen, job.seq, job
        if after == job.seq:
            return
        for step in job.steps:
            if step.result and step.seq > (after or 0):
                yield self._of_step("STEP_COMPLETE", step.seq, step, job.last_progress_at)
        for message in (*self._promotion(job), *(await self._state(job))):
            yield message

    def _promotion(self, job: Job) -> list[Message]:
        """A watcher that missed it, or has come since, hears of it from the state alone."""
        old, self._priority = self._priority, job.priority
        if job.priority == old:
            return []
        return [
            self._message("JOB_PROMOTED", job.seq, job.last_progress_at)
            | {"old": old.word, "new": job.priority.word}
        ]

    async def _state(self, job: Job) -> list[Message]:
        at = job.completed_at or job.last_progress_at
        if job.status in ENDED:
            last = self._message(ENDS[job.status], job.seq, at)
            if job.status is JobStatus.COMPLETED:
                return [last | {"context": job.context}]
            error = job.error
            if job.status is JobStatus.CANCELLED or not error:
                return [last]
            facts = {"code": error.code, "message": error.message, "retryable": error.retryable}
            return [last | facts | {"step_index": error.step}]
        stage = job.steps[job.current_step_index].stage
        open_steps = [step for step in job.steps if step.stage == stage and step.result is None]
        return [message for step in open_steps for message in await self._step_state(job, step)]

    async def _step_state(self, job: Job, step: JobStep) -> list[Message]:
        task = await retry_while_unavailable(self._store, partial(self._store.get, step.task_id))
        if task.status in TERMINAL:  # it ended since: the event of it is on its way
            return []
        waits = task.status is State.QUEUED
        why = (
            await retry_while_unavailable(self._store, partial(self._store.explain, step.task_id))
            if waits
            else None
        )
        return [self._retold(message, job.seq, step) for message in state_messages(task, why)]

    async def _told(self, event: Event) -> list[Message]:
        assert event.job
        step, seq = self._job.steps[event.job.step], event.job.seq
        if event.act == "complete":
            return [self._of_step("STEP_COMPLETE", seq, step, event.at)]
        if event.after in TERMINAL:  # others of its stage go on
            return [self._of_step("STEP_FAILED", seq, step, event.at) | {"code": event.detail.get("code")}]
        if event.act == "promote" and "from" in event.detail:
            old, self._priority = self._priority, event.job.priority
            if old == self._priority:  # a later step, which is as old as its job: no news
                return []
            facts = {"old": old.word, "new": self._priority.word}
            return [self._message("JOB_PROMOTED", seq, event.at) | facts]
        if event.after is State.QUEUED:
            why = await retry_while_unavailable(self._store, partial(self._store.explain, event.task_id))
            told = [event_message(event, why), *waiting_messages(seq, event.at, why)]
            return [self._retold(message, seq, step) for message in told]
        return [self._retold(event_message(event), seq, step)]

    def _retold(self, message: Message, seq: int, step: JobStep) -> Message:
        """What is told of the task, as told of the job."""
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
