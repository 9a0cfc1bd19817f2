"""Jobs: runs of pipelines. Submit, look, resume, cancel; and what can be run."""

import contextlib

from starlette.types import ASGIApp

from fairlead import errors
from fairlead.api.live.stream import EventStream, nothing_new
from fairlead.api.priorities import priority_of
from fairlead.api.problems import TooManyConnections
from fairlead.api.request import Request
from fairlead.api.routes.limits import AT_ONCE, page_of
from fairlead.api.routes.live import last_seen
from fairlead.api.routes.tasks import key_of, terms_of, trace_of
from fairlead.api.table import Route
from fairlead.live.job_feed import JobFeed
from fairlead.model.job import ENDED, NewJob
from fairlead.model.tenants import id_of
from fairlead.pipeline.submitting import submit_job
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.shapes.base import Json, LongPageQuery
from fairlead.shapes.job import (
    CancelJobAnswer,
    JobAnswer,
    JobBody,
    PipelinesAnswer,
    ResumeAnswer,
    ServiceAnswer,
    ServicesAnswer,
    SubmittedJobAnswer,
)
from fairlead.shapes.live import EventsQuery


async def submit(request: Request) -> SubmittedJobAnswer:
    """Run a pipeline: its first step is queued."""
    body: JobBody = request.body
    await request.gateway.spend(request.caller, 1)
    found = (await terms_of(request, [body.user_id])).get(body.user_id or "")
    priority, is_asked = priority_of(request, body.priority, found)
    chosen: Json = {"job_id": id_of(request.caller.tenant, body.job_id)} if body.job_id else {}
    new = NewJob(
        feature_name=body.feature_name,
        input_data=body.input_data,
        priority=priority,
        priority_asked=is_asked,
        user_id=body.user_id,
        tenant=request.caller.tenant,
        weight=found.weight if found else None,
        max_wait_seconds=body.max_wait_seconds,
        idempotency_key=key_of(request, body.idempotency_key),
        trace_id=body.trace_id or trace_of(request),
        **chosen,
    )
    submitted = await submit_job(request.gateway.store.jobs, new)
    if submitted.repeated:
        request.status = 200
        if submitted.priority is not None:
            priority = submitted.priority.word
        with contextlib.suppress(errors.UnknownJob):  # a key may be remembered for longer than its job
            priority = (await request.gateway.store.jobs.get(submitted.job_id)).original_priority.word
    return SubmittedJobAnswer.from_value(submitted, priority=priority)


async def get(request: Request) -> JobAnswer:
    """One job, with the results of its steps so far."""
    return JobAnswer.from_value(await request.gateway.own_job(request.caller, request.path["job_id"]))


async def resume(request: Request) -> Json:
    """Go on at the step that failed, with all results so far."""
    job = await request.gateway.own_job(request.caller, request.path["job_id"])
    skipped = await request.gateway.store.jobs.resume(job.job_id)
    status = (await request.gateway.store.jobs.get(job.job_id)).status
    return {"job_id": job.job_id, "status": status, "skipped": skipped}


async def cancel(request: Request) -> Json:
    """End a job, with what waits and runs of it."""
    job = await request.gateway.own_job(request.caller, request.path["job_id"])
    await request.gateway.store.jobs.cancel(job.job_id)
    return {"job_id": job.job_id, "status": "CANCELLED"}


async def events(request: Request) -> ASGIApp:
    """What happened to a job and is kept, how it is, and then what happens, as Server-Sent Events."""
    job = await request.gateway.own_job(request.caller, request.path["job_id"])
    after = last_seen(request)
    if after == job.seq and job.status in ENDED:
        return nothing_new
    return EventStream(request, JobFeed(request.gateway.store, job), after)


async def pipelines(request: Request) -> PipelinesAnswer:
    """The pipelines that can be run, each with its stages."""
    found, after, most = dict[str, Stages](), request.query.cursor, request.query.limit
    while True:
        count = min(most - len(found), AT_ONCE)
        some, after = await request.gateway.store.jobs.pipelines.page(after, count)
        found |= some
        if not after or len(found) == most:
            return PipelinesAnswer.of(found, after or None)


async def services(request: Request) -> ServicesAnswer:
    """The services that steps may call, each with its limit and its use, and for operators its URL."""
    settings, with_url = request.gateway.store.settings.services, request.caller.tenant is None
    limits, cursor = await page_of(request, max(request.query.cursor, SERVICE))
    # the limits of services follow each other: behind the first of something else there are none
    found = [limit for limit in limits if limit.full_name.startswith(SERVICE)]
    services = [ServiceAnswer.of(limit, settings, with_url=with_url) for limit in found]
    return ServicesAnswer(services=services, next_cursor=cursor if len(found) == len(limits) else None)


JOBS = "/api/v1/jobs"
JOB = f"{JOBS}/{{job_id}}"

ROUTES = (
    Route(
        method="POST",
        path=JOBS,
        scope="submit",
        handler=submit,
        body=JobBody,
        answer=SubmittedJobAnswer,
        status=201,
        refusals=(
            errors.InvalidInput,
            errors.UnknownPipeline,
            errors.IdempotencyConflict,
            errors.QueueFull,
            errors.RateLimited,
        ),
    ),
    Route(method="GET", path=JOB, scope="read", handler=get, answer=JobAnswer, refusals=(errors.UnknownJob,)),
    Route(
        method="POST",
        path=f"{JOB}/resume",
        scope="submit",
        handler=resume,
        answer=ResumeAnswer,
        refusals=(errors.UnknownJob, errors.NotResumable, errors.InvalidInput),
    ),
    Route(
        method="DELETE",
        path=JOB,
        scope="cancel",
        handler=cancel,
        answer=CancelJobAnswer,
        refusals=(errors.UnknownJob, errors.AlreadyFinished),
    ),
    Route(
        method="GET",
        path=f"{JOB}/events",
        scope="read",
        handler=events,
        query=EventsQuery,
        answer=str,
        streams=True,
        media="text/event-stream",
        refusals=(errors.UnknownJob, TooManyConnections),
    ),
    Route(
        method="GET",
        path="/api/v1/pipelines",
        scope="read",
        handler=pipelines,
        query=LongPageQuery,
        answer=PipelinesAnswer,
    ),
    Route(
        method="GET",
        path="/api/v1/services",
        scope="read",
        handler=services,
        query=LongPageQuery,
        answer=ServicesAnswer,
    ),
)
