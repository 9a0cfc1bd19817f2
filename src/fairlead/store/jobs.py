"""Jobs in the store: submit, read, cancel and resume them; and the pipelines and types that were declared."""

import contextlib
import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import msgspec

from fairlead import errors, tracing
from fairlead.blobs.shelf import Owner
from fairlead.checks import check_name, check_short, check_task_id, nearest, to_json
from fairlead.model.explanation import Explanation
from fairlead.model.job import (
    Job,
    JobExplanation,
    JobPage,
    JobStatus,
    NewJob,
    NewStep,
    StepExplanation,
    SubmittedJob,
    check_job_id,
    check_stages,
)
from fairlead.model.priority import Priority, priority_named
from fairlead.model.task import NewTask, write_key
from fairlead.model.unserved import warnings_of
from fairlead.settings import Settings
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.store.archive import page_of_all
from fairlead.store.connection import pack, text
from fairlead.store.job_estimates import JobEstimates
from fairlead.store.pages import Newest, Sought
from fairlead.store.replies import expect_ok, read_explanation
from fairlead.store.session import Part, Session
from fairlead.store.specs import spec_of

OPTIONAL = ("user_id", "tenant", "trace_id")
ORIGINS = ("file", "code")  # a file takes precedence
PACKED = (b"plan", b"step:")  # how the fields begin that are not text
PAGE_BYTES = 256 * 1024  # of the jobs of a page; the last may exceed it by the results of all its steps

as_stages = msgspec.json.Decoder(Stages).decode


class Jobs(Part):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pipelines = Pipelines(session)
        self.estimates = JobEstimates(session)

    @tracing.of_submit
    async def submit(self, job: NewJob) -> SubmittedJob:
        """Accepts it with all its steps, of which the first stage is queued. Same key: same job."""
        request = _request(job, self._session.settings)
        owner, given = Owner("job", job.job_id), request["fields"]["input"]
        await self._session.blobs.claim(owner, job.tenant, "input_data", given)
        answer = expect_ok(await self._session.ask("submit_job", pack(request)), "exists")
        known = Priority(answer["priority"]) if "priority" in answer else None
        await self._session.acceptance.confirm("job", [answer["id"]])
        repeated, warnings = answer["answer"] == "exists", warnings_of(answer.get("unserved", ()))
        return SubmittedJob(answer["id"], JobStatus(answer["status"]), repeated, known, warnings)

    async def get(self, job_id: str) -> Job:
        key = self._connection.keys.key("job", check_job_id(job_id))
        fields, now = await self._connection.read(("HGETALL", key), ("TIME",))
        if not fields and self._session.archive:
            fields = await self._session.archive.record("job", job_id)
        if not fields:
            raise errors.UnknownJob()
        return _job(job_id, fields, self._session.instant(now))

    async def page(
        self,
        *,
        status: str | None = None,
        user_id: str | None = None,
        feature_name: str | None = None,
        search: str | None = None,
        since: int | None = None,
        until: int | None = None,
        error: str | None = None,
        needs: str | None = None,
        tenant: str | None = None,
        limit: int = 50,
        cursor: str = "",
    ) -> JobPage:
        """A page of matching jobs, newest first; continue with its `next_cursor`.

        It ends early at 256 KiB. A job that exists from the first page to the last is on one of them, and on
        no other. `search`: the beginning of an id, or a part of a feature_name or a user_id.
        """
        self._connection.membership.check()
        if status is not None and status not in list(JobStatus):
            raise errors.InvalidInput("status", f"{status!r} is not one of {', '.join(JobStatus)}")
        if feature_name is not None:
            check_name("feature_name", feature_name)
        check_short("user_id", user_id)
        check_short("tenant", tenant)
        sought = Sought(search, ("feature", "user_id"), since, until, error, needs)
        sought.check()
        wanted = {"status": status, "user_id": user_id, "feature": feature_name, "tenant": tenant}
        now = self._session.instant(*await self._connection.read(("TIME",)))

        def make(job_id: str, fields: Mapping[bytes, bytes]) -> Job | None:
            job = _job(job_id, fields, now)
            # it may have changed since the list was read
            return job if status in (None, job.status) else None

        listed = Newest(self._connection, "job", wanted, make, sought)
        page = await page_of_all(listed, self._session.archive, limit, cursor, PAGE_BYTES)
        return JobPage(page.found, page.cursor, page.warnings)

    async def explain(self, job_id: str) -> JobExplanation:
        """What the steps of the current stage wait for, or how the job ended."""
        job = await self.get(job_id)
        steps: list[StepExplanation] = []
        for step in job.current_steps:
            with contextlib.suppress(errors.UnknownTask):  # the job has just ended, and its step is forgotten
                explained = await self.explain_task(step.task_id)
                steps.append(StepExplanation(step.index, step.name, explained))
        return JobExplanation(job.job_id, job.status, job.error, tuple(steps))

    async def explain_task(self, task_id: str, *, brief: bool = False) -> Explanation:
        """Why it waits; unless `brief`, with a known type that is similar to a type that no worker serves."""
        answer = await self._session.run("explain", check_task_id(task_id), "1" if brief else "0")
        similar = None
        if "types" in answer:
            known = {*answer["types"], *await self.pipelines.task_types()}
            similar = None if answer["type"] in known else nearest(answer["type"], known)
        if "blocked_by" in answer:
            await self.estimates.add_ends(answer)
        return read_explanation(task_id, answer, similar)

    async def cancel(self, job_id: str) -> None:
        """Ends it, with those of its steps that wait or run."""
        await self._session.run("cancel_job", check_job_id(job_id))

    async def resume(self, job_id: str, *, force: bool = False) -> list[str]:
        """Continues at the stage that failed; returns those of its steps that are done and not run again.

        With `force` also after a permanent error.
        """
        answer = await self._session.run("resume_job", check_job_id(job_id), "1" if force else "0")
        done: list[str] = answer["done"]
        return done


def _job(job_id: str, fields: Mapping[bytes, bytes], now: int) -> Job:
    record = {text(name): value if name.startswith(PACKED) else text(value) for name, value in fields.items()}
    return Job.from_record(job_id, record, now)


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
        max_wait_seconds=_max_wait(job, step, settings),
        trace_id=job.trace_id,
        traceparent=job.traceparent,
        job_id=job.job_id,
    )
    spec = spec_of(task, settings)
    spec["step_name"] = step.name
    spec["facts"]["step"] = str(index)
    return spec


def _max_wait(job: NewJob, step: NewStep, settings: Settings) -> float | None:
    """How long the step may wait: as the job says, else as its service does."""
    if job.max_wait_seconds is not None or not step.task_type.startswith(SERVICE):
        return job.max_wait_seconds
    service = settings.services.get(step.task_type.removeprefix(SERVICE))
    return service.wait_seconds if service else None


def _digest(job: NewJob, fields: dict[str, Any]) -> str:
    """The same request again has the same digest, whatever its id and its trace."""
    left_out = {"trace_id"} if job.priority_asked else {"trace_id", "priority"}
    content = sorted((name, repr(value)) for name, value in fields.items() if name not in left_out)
    return hashlib.sha256(repr([*content, repr(job.max_wait_seconds)]).encode()).hexdigest()[:32]


class Pipelines(Part):
    """The declared pipelines and task types. There may be thousands of either: only a part is read."""

    async def get(self, name: str) -> Stages | None:
        return (await self._read([name])).get(name)

    async def names(self) -> list[str]:
        return await self._declared("pipelines")

    async def page(self, after: str, count: int) -> tuple[dict[str, Stages], str]:
        """Those after this name, and the name to continue from: "" when there are no more."""
        names = await self.names()
        first = bisect_right(names, after)
        some = names[first : first + count]
        return await self._read(some), some[-1] if first + count < len(names) else ""

    async def task_types(self) -> list[str]:
        return await self._declared("types")

    async def task_types_among(self, names: Iterable[str]) -> set[str]:
        """Those of these names that are task types."""
        wanted = [*names]
        return {name for name, settings in await self._look_up("types", wanted) if settings is not None}

    async def _declared(self, key: str) -> list[str]:
        (fields,) = await self._connection.read(("HKEYS", self._connection.keys.key(key)))
        return sorted({text(field).partition(":")[2] for field in fields})

    async def _read(self, names: list[str]) -> dict[str, Stages]:
        found: dict[str, Stages] = {}
        for name, stages in await self._look_up("pipelines", names):
            if stages is not None:
                found.setdefault(name, as_stages(stages))
        return found

    async def _look_up(self, key: str, names: list[str]) -> list[tuple[str, bytes | None]]:
        """By name, once for each origin."""
        if not names:
            return []
        fields = [(f"{origin}:{name}", name) for name in names for origin in ORIGINS]
        (values,) = await self._connection.read(
            ("HMGET", self._connection.keys.key(key), *(field for field, _ in fields))
        )
        return [(name, value) for (_, name), value in zip(fields, values, strict=True)]
