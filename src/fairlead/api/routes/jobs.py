"""Jobs: submit, get, list, explain, resume, cancel; and the pipelines and services they use."""

import contextlib

from fairlead import errors
from fairlead.api.limit_pages import AT_ONCE, page_of
from fairlead.api.priorities import priority_of
from fairlead.api.request import Request
from fairlead.api.routes.limits import tenant_of
from fairlead.api.routes.tasks import REFUSED, key_of, terms_of
from fairlead.api.table import Routes
from fairlead.model.job import NewJob
from fairlead.model.tenants import id_of
from fairlead.pipeline.pipelines import submit_job
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.shapes.base import Json, LongPageQuery
from fairlead.shapes.job import (
    CancelJobAnswer,
    JobAnswer,
    JobBody,
    JobExplainAnswer,
    JobQuery,
    JobsAnswer,
    PipelinesAnswer,
    ResumeAnswer,
    ResumeQuery,
    ServiceAnswer,
    ServicesAnswer,
    SubmittedJobAnswer,
)

routes = Routes("/api/v1", scope="read")


@routes.post("/jobs", scope="submit", status=201, refusals=(*REFUSED, errors.UnknownPipeline))
async def submit(request: Request, body: JobBody) -> SubmittedJobAnswer:
    """Submit a job, which runs a pipeline: its first step is queued."""
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
        trace_id=body.trace_id or request.trace_id,
        traceparent=request.traceparent,
        **chosen,
    )
    submitted = await submit_job(request.store.jobs, new)
    if submitted.repeated:
        request.status = 200
        if submitted.priority is not None:
            priority = submitted.priority.word
        with contextlib.suppress(errors.UnknownJob):  # a key may outlive its job
            priority = (await request.store.jobs.get(submitted.job_id)).original_priority.word
    return SubmittedJobAnswer.from_value(submitted, priority=priority)


@routes.get("/jobs")
async def find(request: Request, query: JobQuery) -> JobsAnswer:
    """List the jobs that match, newest first, page by page; a page ends early at 256 KiB."""
    tenant = tenant_of(request, query.tenant)
    page = await request.store.jobs.page(**query.wanted | {"tenant": tenant})
    jobs = [*map(JobAnswer.from_value, page.jobs)]
    return JobsAnswer(jobs=jobs, next_cursor=page.next_cursor or None, warnings=page.warnings)


@routes.get("/jobs/{job_id}", refusals=(errors.UnknownJob,))
async def get(request: Request) -> JobAnswer:
    """Get a job, with the results of its steps so far."""
    job = await request.own_job(request.path["job_id"])
    return JobAnswer.from_value(await request.store.jobs.estimates.of(job))


@routes.get("/jobs/{job_id}/explain", refusals=(errors.UnknownJob,))
async def explain(request: Request) -> JobExplainAnswer:
    """Explain what the current steps of a job wait for, or how it ended."""
    job = await request.own_job(request.path["job_id"])
    explanation = await request.store.jobs.explain(job.job_id)
    if request.caller.tenant is not None:
        explanation = explanation.seen_by(request.caller.tenant)
    return JobExplainAnswer.of(explanation)


@routes.post(
    "/jobs/{job_id}/resume",
    scope="submit",
    forced_scope="admin",
    refusals=(errors.UnknownJob, errors.NotResumable, errors.InvalidInput),
)
async def resume(request: Request, query: ResumeQuery) -> ResumeAnswer:
    """Resume a job at the step that failed; `force=true` (admin) also after a permanent error."""
    job = await request.own_job(request.path["job_id"])
    skipped = await request.store.jobs.resume(job.job_id, force=query.force)
    status = (await request.store.jobs.get(job.job_id)).status
    if query.force:
        await request.audit("resume_job", job.job_id, {"status": job.status}, {"status": status})
    return ResumeAnswer(job_id=job.job_id, status=status.value, skipped=skipped)


@routes.delete("/jobs/{job_id}", scope="cancel", refusals=(errors.UnknownJob, errors.AlreadyFinished))
async def cancel(request: Request) -> CancelJobAnswer:
    """Cancel a job, with its steps that wait or run."""
    job = await request.own_job(request.path["job_id"])
    await request.store.jobs.cancel(job.job_id)
    return CancelJobAnswer(job_id=job.job_id, status="CANCELLED")


@routes.get("/pipelines")
async def pipelines(request: Request, query: LongPageQuery) -> PipelinesAnswer:
    """List the pipelines, each with its stages."""
    found, after, most = dict[str, Stages](), query.cursor, query.limit
    while True:
        count = min(most - len(found), AT_ONCE)
        some, after = await request.store.jobs.pipelines.page(after, count)
        found |= some
        if not after or len(found) == most:
            return PipelinesAnswer.of(found, after or None)


@routes.get("/services")
async def services(request: Request, query: LongPageQuery) -> ServicesAnswer:
    """List the services that steps call, each with its limit and use, and for operators its URL."""
    settings, with_url = request.store.settings.services, request.caller.tenant is None
    limits, cursor = await page_of(request.store, max(query.cursor, SERVICE), query.limit)
    # the limits of services are adjacent: after the first other limit there are none
    found = [limit for limit in limits if limit.full_name.startswith(SERVICE)]
    services = [ServiceAnswer.of(limit, settings, with_url=with_url) for limit in found]
    return ServicesAnswer(services=services, next_cursor=cursor if len(found) == len(limits) else None)
