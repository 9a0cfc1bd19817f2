"""`fairlead job`: submit, show, watch, resume and cancel jobs, which are runs of pipelines."""

import sys
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import asdict

from fairlead.app.function import new_job
from fairlead.app.job_handle import JobHandle, context_of
from fairlead.cli.job_updates import follow_job
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_answer, print_end, print_facts, print_json, print_table, say
from fairlead.cli.submit import JsonObject, SubmitOptions, given_parameters
from fairlead.client.job_backend import jobs_of
from fairlead.model.job import Job, JobStatus, JobStep, NewJob, SubmittedJob
from fairlead.shapes.job import JobAnswer

app = App(name="job", help="Submit, show, watch, resume and cancel jobs, which are runs of pipelines.")

JobId = Annotated[str, Parameter(help="The id that job submit printed.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobOptions(SubmitOptions):
    input: JsonObject = None

    def job(self, feature_name: str) -> NewJob:
        options = {
            "priority": self.priority,
            "user_id": self.user_id,
            "max_wait_seconds": self.max_wait,
            "idempotency_key": self.idempotency_key,
        }
        return new_job(feature_name, given_parameters(self.input, self.param, "--input"), options)


NOTHING_GIVEN = JobOptions()


@app.command
async def submit(
    pipeline: Annotated[str, Parameter(help="The name of the pipeline.")],
    /,
    *,
    wanted: JobOptions = NOTHING_GIVEN,
    wait: Annotated[bool, Parameter(help="Show its progress, then print its context.", negative=())] = False,
    options: Options = DEFAULTS,
) -> None:
    """Submit a job: one run of a pipeline. Exit code 1 when --wait sees it fail."""
    new = wanted.job(pipeline)
    async with open_backend(options, join=True) as backend:
        jobs = jobs_of(backend)
        submitted = await jobs.submit(new)
        if wait:
            say(_sentence(submitted))
            job = await follow_job(JobHandle(jobs, submitted), sys.stderr, "table")
    if wait:
        print_end(options.output, JobAnswer.from_value(job), partial(context_of, job))
    else:
        answer = {name: getattr(submitted, name) for name in ("job_id", "status", "repeated")}
        print_answer(options.output, answer, _sentence(submitted))


@app.command
async def show(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Show a job and its steps; as JSON also the result of each."""
    async with open_backend(options) as backend:
        job = await jobs_of(backend).get(job_id)
    answer = JobAnswer.from_value(job)
    if options.output == "json":
        print_json(answer)
        return
    facts = {name: value for name, value in asdict(answer).items() if name not in ("steps", "context")}
    print_facts({name: value for name, value in facts.items() if value not in (None, {})})
    print()
    columns = ("step", "name", "status", "attempts", "ms", "task")
    print_table(columns, [_row(job, step) for step in job.steps])


@app.command
async def watch(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Show the progress of a job until it has ended. Exit code 1 when it failed or was cancelled."""
    async with open_backend(options) as backend:
        job = await follow_job(await JobHandle.of(jobs_of(backend), job_id), sys.stdout, options.output)
    context = context_of(job)
    if options.output == "table":
        print_json(context)


@app.command
async def resume(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Resume a job at the step that failed, with all results so far."""
    async with open_backend(options) as backend:
        jobs = jobs_of(backend)
        skipped = await jobs.resume(job_id)
        status = (await jobs.get(job_id)).status
    answer = {"job_id": job_id, "status": status, "skipped": skipped}
    kept = f"; not run again: {', '.join(skipped)}" if skipped else ""
    print_answer(options.output, answer, f"{job_id} resumed{kept}")


@app.command
async def cancel(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Cancel a job, with its steps that wait or run."""
    async with open_backend(options) as backend:
        await jobs_of(backend).cancel(job_id)
    answer = {"job_id": job_id, "status": JobStatus.CANCELLED}
    print_answer(options.output, answer, f"{job_id} {JobStatus.CANCELLED}")


def _sentence(submitted: SubmittedJob) -> str:
    return f"{submitted.job_id} {submitted.status}" + " (accepted before)" * submitted.repeated


def _row(job: Job, step: JobStep) -> tuple[object, ...]:
    metrics = step.result.get("metrics") if step.result else None  # as its worker reported them
    took = metrics.get("execution_time_ms") if isinstance(metrics, dict) else None
    return step.index, step.name, _step_status(job, step), step.attempts, took, step.task_id


def _step_status(job: Job, step: JobStep) -> str:
    """As far as the job knows; `fairlead task show` has the details of a step."""
    if step.result:
        return "completed"
    if job.error and job.error.step == step.index:
        return "failed"
    return "started" if step.attempts else "waiting"
