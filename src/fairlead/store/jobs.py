"""Jobs in the store, each a run of a pipeline: submit, read, cancel and resume them."""

import hashlib
from itertools import count
from typing import Any

from fairlead import errors
from fairlead.checks import check_name, check_short, to_json
from fairlead.model.job import Job, JobStatus, NewJob, NewStep, SubmittedJob, check_job_id, check_stages
from fairlead.model.priority import Priority, priority_named
from fairlead.model.task import NewTask, write_key
from fairlead.settings import Settings
from fairlead.store.connection import pack, text
from fairlead.store.pipelines import Pipelines
from fairlead.store.replies import expect_ok
from fairlead.store.session import Session
from fairlead.store.specs import spec_of

OPTIONAL = ("user_id", "tenant", "trace_id")


class Jobs:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.pipelines = Pipelines(session)

    async def submit(self, job: NewJob) -> SubmittedJob:
        """Accepts it with all its steps, of which the first stage is queued. Same key: same job."""
        request = pack(_request(job, self._session.settings))
        answer = expect_ok(await self._session.ask("submit_job", request), "exists")
        known = Priority(answer["priority"]) if "priority" in answer else None
        return SubmittedJob(answer["id"], JobStatus(answer["status"]), answer["answer"] == "exists", known)

    async def get(self, job_id: str) -> Job:
        connection = self._session.connection
        (fields,) = await connection.read(("HGETALL", connection.keys.key("job", check_job_id(job_id))))
        if not fields:
            raise errors.UnknownJob()
        record = {text(name): value if name == b"plan" else text(value) for name, value in fields.items()}
        return Job.from_record(job_id, record)

    async def cancel(self, job_id: str) -> None:
        """Ends it, with those of its steps that wait or run."""
        await self._session.run("cancel_job", check_job_id(job_id))

    async def resume(self, job_id: str) -> list[str]:
        """Continues at the stage that failed; returns those of its steps that are done and not run again."""
        done: list[str] = (await self._session.run("resume_job", check_job_id(job_id)))["done"]
        return done


def _request(job: NewJob, settings: Settings) -> dict[str, Any]:
    check_name("feature_name", job.feature_name)
    check_stages(job.stages)
    check_job_id(job.job_id)
    for name in ("user_id", "tenant", "trace_id", "idempotency_key"):
        check_short(name, getattr(job, name))
    fields = {
        "feature": job.feature_name,
        "input": to_json("input_data", job.input_data),
        "priority": int(priority_named(job.priority)),
    } | {name: value for name in OPTIONAL if (value := getattr(job, name)) is not None}
    request: dict[str, Any] = {"id": job.job_id, "fields": fields, "stages": _plan(job, settings)}
    request["digest"] = _digest(job, fields)
    if job.idempotency_key is not None:
        # a letter before it: a task may have the same key
        request["key"] = "j" + write_key(job.tenant or "", job.idempotency_key)
    return request


def _plan(job: NewJob, settings: Settings) -> list[list[dict[str, Any]]]:
    index = count()
    return [[_step(job, step, next(index), settings) for step in stage] for stage in job.stages]


def _step(job: NewJob, step: NewStep, index: int, settings: Settings) -> dict[str, Any]:
    check_name("step", step.name)
    task = NewTask(
        task_type=step.task_type,
        priority=job.priority,
        user_id=job.user_id,
        tenant=job.tenant,
        weight=job.weight,
        max_wait_seconds=job.max_wait_seconds,
        trace_id=job.trace_id,
        job_id=job.job_id,
    )
    spec = spec_of(task, settings)
    spec["step_name"] = step.name
    spec["facts"]["step"] = str(index)
    return spec


def _digest(job: NewJob, fields: dict[str, Any]) -> str:
    """The same request again has the same digest, whatever its id and its trace."""
    left_out = {"trace_id"} if job.priority_asked else {"trace_id", "priority"}
    content = sorted((name, repr(value)) for name, value in fields.items() if name not in left_out)
    return hashlib.sha256(repr([*content, repr(job.max_wait_seconds)]).encode()).hexdigest()[:32]
