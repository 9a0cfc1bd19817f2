"""`fairlead job`: submit, list, show, explain, watch, resume and cancel jobs (runs of pipelines)."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TextIO

from cyclopts import App, Parameter
from msgspec import convert
from msgspec.structs import asdict

from fairlead.app.handle import context_of
from fairlead.app.options import new_job
from fairlead.cli.audit import note
from fairlead.cli.listing import ALL, LIST, ListOptions, Past, View, gathered
from fairlead.cli.listing import show as show_list
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import Output, print_answer, print_end, print_json, printable, say, warn
from fairlead.cli.screen import LOOK_AGAIN, Update, follow, output_words
from fairlead.cli.submit import JsonObject, SubmitOptions, given_parameters
from fairlead.cli.table import Columns, print_facts, print_table, table_of
from fairlead.client.job_backend import JobsBackend, jobs_of
from fairlead.client.resumable import Resumable
from fairlead.live.messages import Message
from fairlead.model.job import Job, JobStatus, JobStep, NewJob, SubmittedJob
from fairlead.shapes.estimate import EstimateAnswer
from fairlead.shapes.job import JobAnswer, JobExplainAnswer, JobsAnswer, JobStatusName
from fairlead.times import time_text

app = App(
    name="job",
    help="Submit, list, show, explain, watch, resume and cancel jobs, which are runs of pipelines.",
)

COLUMNS: Columns = {
    "job": "id",
    "pipeline": "feature_name",
    "status": "status",
    "done": lambda job: _done(job),
    "priority": "priority",
    "user": "user_id",
    "queued": "queued_at",
    "error": lambda job: job["error"] and job["error"]["code"],
}
LEAST_USED = ("user", "priority", "error", "queued", "pipeline")

#: Of the bar of a step, after a message.
FRACTIONS = {"STEP_COMPLETE": 1.0, "QUEUED": 0.0, "RETRY": 0.0, "JOB_FAILED": 0.0}
#: Types of messages that need no more words.
PLAIN = {
    "QUEUED": "queued",
    "STEP_START": "running",
    "STEP_COMPLETE": "completed",
    "EXTENDED": "got more time",
    "JOB_COMPLETE": "completed",
    "CANCELLED": "cancelled",
}

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
        warn(submitted.warnings)
        if wait:
            say(_sentence(submitted))
            job = await follow_job(jobs, submitted.job_id, sys.stderr, "table")
    if wait:
        print_end(options.output, JobAnswer.from_value(job), partial(context_of, job))
    else:
        answer = {name: getattr(submitted, name) for name in ("job_id", "status", "repeated", "warnings")}
        print_answer(options.output, answer, _sentence(submitted))


@app.command(name="list")
async def list_jobs(
    *,
    status: Annotated[JobStatusName | None, Parameter(help="Only jobs with this status.")] = None,
    user_id: Annotated[str | None, Parameter(help="Only jobs of this user.")] = None,
    feature_name: Annotated[str | None, Parameter(help="Only jobs of this pipeline.")] = None,
    past: Past = ALL,
    limit: Annotated[int, Parameter(help="Maximum number of jobs.")] = 50,
    cursor: Annotated[str, Parameter(help="Continue where the previous list ended.")] = "",
    options: ListOptions = LIST,
) -> None:
    """List jobs, newest first: those that wait, run or have ended."""
    wanted = past.wanted
    async with open_backend(options) as backend:
        jobs = jobs_of(backend)

        async def read_page(limit: int, cursor: str) -> tuple[list[Job], str]:
            page = await jobs.page(
                status=status,
                user_id=user_id,
                feature_name=feature_name,
                **wanted,
                limit=limit,
                cursor=cursor,
            )
            warn(page.warnings)
            return page.jobs, page.next_cursor

        async def read() -> View:
            found, following = await gathered(read_page, limit, cursor)
            answers = [JobAnswer.from_value(job) for job in found]
            more = f"There may be more: --cursor {following}" if following else ""
            answer = JobsAnswer(jobs=answers, next_cursor=following or None)
            return View(answer, [table_of(answers, COLUMNS, LEAST_USED)], more)

        await show_list(options, read)


def _done(job: dict[str, Any]) -> str:
    done = sum(step["status"] == "completed" for step in job["steps"])
    return f"{done}/{job['total_steps']}"


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
    facts["estimate"] = f"done in {job.estimate.words}" if job.estimate else None
    print_facts({name: value for name, value in facts.items() if value not in (None, {})})
    print()
    columns = ("step", "name", "status", "attempts", "waited", "queued", "started", "completed", "ms", "task")
    least_used = ("ms", "completed", "queued", "started", "attempts", "waited")
    print_table(columns, [_row(step) for step in job.steps], least_used)


@app.command
async def explain(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Explain what the current steps of a job wait for, or how it ended."""
    async with open_backend(options) as backend:
        explained = await jobs_of(backend).explain(job_id)
    if options.output == "json":
        print_json(JobExplainAnswer.of(explained))
    else:
        print("\n".join(map(printable, explained.sentences)))


@app.command
async def watch(job_id: JobId, /, *, options: Options = DEFAULTS) -> None:
    """Show the progress of a job until it has ended. Exit code 1 when it failed or was cancelled."""
    async with open_backend(options) as backend:
        job = await follow_job(jobs_of(backend), job_id, sys.stdout, options.output)
    context = context_of(job)
    if options.output == "table":
        print_json(context)


@app.command
async def resume(
    job_id: JobId,
    /,
    *,
    force: Annotated[
        bool, Parameter(help="Also after a permanent error, when its cause is fixed.", negative=())
    ] = False,
    options: Options = DEFAULTS,
) -> None:
    """Resume a failed job at the step that failed, with all results so far and all attempts of the step."""
    async with open_backend(options) as backend:
        jobs = jobs_of(backend)
        skipped = await jobs.resume(job_id, force=force)
        status = (await jobs.get(job_id)).status
        if force:
            await note(backend, "resume_job", job_id, {"status": JobStatus.FAILED}, {"status": status})
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


def _row(step: JobStep) -> tuple[object, ...]:
    metrics = step.result.get("metrics") if step.result else None  # as its worker reported them
    took = metrics.get("execution_time_ms") if isinstance(metrics, dict) else None
    waited = None if step.waited_seconds is None else f"{step.waited_seconds:.1f} s"
    times = (time_text(at) for at in (step.queued_at, step.started_at, step.completed_at))
    return step.index, step.name, step.status, step.attempts, waited, *times, took, step.task_id


async def follow_job(jobs: JobsBackend, job_id: str, stream: TextIO, output: Output) -> Job:
    """Shows what happens to the job until it has ended; the job as it ended."""
    job = await jobs.get(job_id)
    await follow("job", job_id, _updates(jobs, job), stream, output, [step.name for step in job.steps])
    return await jobs.get(job_id)


async def _updates(jobs: JobsBackend, job: Job) -> AsyncGenerator[Update]:
    async with Resumable(jobs.watch(job)) as messages:
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN):
                    message = await anext(messages)
            except StopAsyncIteration:
                return
            except TimeoutError:
                await jobs.get(job.job_id)  # fails when the server is gone
            else:
                yield _update(message)


def _update(message: Message) -> Update:
    """Its line is like `image_gen (3/4) 50% half done`."""
    words, kind = _words_of(message), message["type"]
    of = "job"
    if "service_name" in message:
        of = f"{message['service_name']} ({message['step_index'] + 1}/{message['total_steps']})"
    return Update(
        answer=message,
        line=f"{of} {words}",
        bar=None if kind == "OUTPUT" else message.get("step_index"),
        words=words,
        starts=kind == "STEP_START",
        fraction=message["fraction"] if kind == "PROGRESS" else FRACTIONS.get(kind),
    )


def _words_of(message: Message) -> str:
    match message["type"]:
        case "WAITING":
            return f"waits for limit {', '.join(one['limit'] for one in message['limits'])}"
        case "ESTIMATE":
            return f"starts in {_estimate_words(message['estimate'])}"
        case "PROGRESS":
            fraction, words = message["fraction"], message["message"]
            return words if fraction is None else f"{fraction:.0%} {words}".rstrip()
        case "OUTPUT":
            return output_words(message["chunk"])
        case "RETRY":
            return f"is tried again in {message['delay_seconds']:g} s ({message['code']})"
        case "JOB_PROMOTED":
            return f"promoted from {message['old']} to {message['new']}"
        case "DOWNGRADED":
            return f"shortened to tier {message['tier']}, until {message['deadline']}"
        case "STEP_FAILED" | "JOB_FAILED":
            return f"failed ({message['code']})"
        case other:
            return PLAIN.get(other, str(other))


def _estimate_words(estimate: dict[str, Any]) -> str:
    return convert(estimate, EstimateAnswer).to_value().words
