"""The feed of a job: the messages about its steps, and about the job itself."""

from collections.abc import AsyncGenerator

from fairlead.live.feed import Feed
from fairlead.live.messages import Message
from fairlead.model.event import Event
from fairlead.model.job import ENDED, Job, JobStatus, JobStep
from fairlead.model.priority import Priority
from fairlead.model.states import TERMINAL
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

    def _position(self, event: Event) -> tuple[int, bool]:
        assert event.job
        return event.job.seq, event.job.status in ENDED

    async def _catch_up(self) -> AsyncGenerator[Message]:
        """The steps that are done, a promotion that was missed, and the state."""
        job = await self._read(self._store.jobs.get, self._watched)
        self._ended = job.status in ENDED
        after, self._seen, self._job = self._seen, job.seq, job
        if after == job.seq:
            return
        for step in job.steps:
            if step.result and step.seq > (after or 0):
                yield self._of_step("STEP_COMPLETE", step.seq, step, job.last_progress_at)
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
        stage = job.steps[job.current_step_index].stage
        for step in job.steps:
            if step.stage == stage and step.result is None:
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
