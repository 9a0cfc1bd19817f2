"""The tasks of a worker: poll for them, report progress and results, ask for time, give them back."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from msgspec.structs import replace

from fairlead import errors
from fairlead.api.polling import poll_tasks, wait_for_call
from fairlead.api.problems import InvalidBody, problem_of
from fairlead.api.request import AT_ONCE, BATCH_BODY, Request, decode_item, in_groups, size_of, taking_turns
from fairlead.api.routes.workers import UNKNOWN, worker_id
from fairlead.api.table import Routes
from fairlead.log.events import EventLog
from fairlead.model.batch import bounded_parts
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.shapes.base import Json, Moment
from fairlead.shapes.worker import (
    ErrorBody,
    ExtendAnswer,
    ExtendBody,
    FrameOfClient,
    FramesAnswer,
    FramesBody,
    OneResult,
    PollAnswer,
    PollBody,
    ReleaseAnswer,
    ReleaseBody,
    ResultAnswer,
    ResultBody,
    SayAnswer,
    SayBody,
    ShortenedBody,
    TaskProgressBody,
    WaitAnswer,
    WaitBody,
)
from fairlead.times import time_text

ONE_RESULT = msgspec.json.Decoder(OneResult)
ANYTHING = msgspec.json.Decoder(Any)

log = EventLog("fairlead.api")
routes = Routes("/internal/workers/{worker_id}", scope="worker", for_all_tenants=True, refusals=UNKNOWN)


@routes.post("/poll", operation_id="workers_poll")
async def poll(request: Request, body: PollBody) -> PollAnswer:
    """Claim tasks that can start now, at most `available_capacity`; waits for one up to `wait_seconds`."""
    return PollAnswer.from_value(await poll_tasks(request, worker_id(request), body))


@routes.post("/wait", operation_id="worker_calls_wait")
async def wait(request: Request, body: WaitBody) -> WaitAnswer:
    """Wait until there is something to claim, a task is cancelled or shortened, or a client sent frames."""
    return WaitAnswer(called=await wait_for_call(request, worker_id(request), body.wait_seconds))


@routes.post(
    "/result",
    operation_id="workers_result",
    most_body=BATCH_BODY,
    refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
    answer=ResultAnswer,
)
async def result(request: Request, body: ResultBody) -> Json:
    """Report how one run, or many, ended; with `poll` also claim the next tasks, in one round trip."""
    if body.results is None:
        answer = await _report_one(request, body)
    else:
        answer = await _report_many(request, body, body.results)
    if body.poll:
        answer["polled"] = PollAnswer.from_value(await poll_tasks(request, worker_id(request), body.poll))
    return answer


async def _report_one(request: Request, body: ResultBody) -> Json:
    (answer,) = await _report(request, [_one(body)])
    if isinstance(answer, errors.FairleadError):
        raise answer
    return {"accepted": True}


async def _report_many(request: Request, body: ResultBody, items: list[msgspec.Raw]) -> Json:
    """A few at a time. All are read before the first is reported: if one is malformed, all are refused."""
    if body.task_id is not None:
        raise InvalidBody("results", "give one result, or a list of them, not both")
    groups, rows = list(in_groups(items)), list[Json]()
    if len(groups) > 1:
        async for _ in taking_turns(map(_results, groups, _starts(groups))):
            pass
    async for group, start in taking_turns(zip(groups, _starts(groups), strict=True)):
        results = _results(group, start)
        await asyncio.sleep(0)  # the results are packed in another turn of the event loop
        answers = await _report(request, results)
        rows += [_accepted(one.task_id, answer) for one, answer in zip(results, answers, strict=True)]
    return {"accepted": all(row["accepted"] for row in rows), "results": rows}


def _starts(groups: Sequence[Sequence[msgspec.Raw]]) -> list[int]:
    """The index of the first item of each group."""
    return [*accumulate(map(len, groups), initial=0)][:-1]


def _results(group: Sequence[msgspec.Raw], start: int) -> list[OneResult]:
    return [decode_item(item, ONE_RESULT, f"results[{start + i}]") for i, item in enumerate(group)]


def _one(body: ResultBody) -> OneResult:
    if body.task_id is None or body.status is None:
        raise InvalidBody("task_id", "task_id and status are required, or a list of results")
    return OneResult(
        task_id=body.task_id,
        status=body.status,
        result=decode_item(body.result, ANYTHING, "result"),
        error=body.error,
        fence=body.fence,
        truncated=body.truncated,
    )


async def _report(request: Request, results: list[OneResult]) -> list[State | errors.FairleadError]:
    """In the order of the results; the store takes completions and failures apart."""
    completed = [
        Completed(one.task_id, one.fence, one.result, one.truncated)
        for one in results
        if one.status == "completed"
    ]
    failed = [_failed(one) for one in results if one.status == "failed"]
    answers, _ = await request.store.report(worker_id(request), completed, failed)
    of_completed, of_failed = iter(answers[: len(completed)]), iter(answers[len(completed) :])
    _log_failures(worker_id(request), failed, answers[len(completed) :])
    return [next(of_completed if one.status == "completed" else of_failed) for one in results]


def _failed(one: OneResult) -> Failed:
    error = one.error or ErrorBody()
    return Failed(
        one.task_id,
        one.fence,
        error.code,
        error.message,
        error.retriable,
        round(error.retry_after_seconds * 1000),
        crashed=error.crashed,
        traceback=error.traceback,
    )


def _log_failures(
    worker: str, failed: Sequence[Failed], answers: Sequence[State | errors.FairleadError]
) -> None:
    """Some workers keep no log, or keep it far away. The error itself is in the log of the task."""
    for report, status in zip(failed, answers, strict=True):
        if isinstance(status, State):
            log.info(
                "failure_reported",
                task=report.task_id,
                fence=report.fence,
                worker=worker,
                code=report.code,
                retriable=report.retriable,
                status=status,
            )


def _accepted(task_id: str, answer: State | errors.FairleadError | None) -> Json:
    """One row of an answer to many; None: accepted, and there is no state to show."""
    if isinstance(answer, errors.FairleadError):
        return {"task_id": task_id, "accepted": False, "code": answer.code, "error": problem_of(answer).body}
    return {"task_id": task_id, "accepted": True, "status": answer}


@routes.post("/release", operation_id="workers_release", answer=ReleaseAnswer)
async def release(request: Request, body: ReleaseBody) -> Json:
    """Give tasks back unrun, without penalty."""
    grants = [Grant(task_id, body.fences.get(task_id)) for task_id in body.task_ids]
    answers = await request.store.release(worker_id(request), *grants)
    return {"results": [_accepted(*pair) for pair in zip(body.task_ids, answers, strict=True)]}


@routes.post(
    "/extend",
    operation_id="worker_calls_extend",
    refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
)
async def extend(request: Request, body: ExtendBody) -> ExtendAnswer:
    """Extend the deadline of a running task, unless it has more time already."""
    grant = Grant(body.task_id, body.fence)
    deadline = await request.store.extend(worker_id(request), grant, round(body.seconds * 1000))
    return ExtendAnswer(task_id=body.task_id, deadline=Moment(time_text(deadline)))


@routes.post("/shortened", operation_id="worker_calls_shortened", answer=ReleaseAnswer)
async def shortened(request: Request, body: ShortenedBody) -> Json:
    """Confirm that the new deadlines of these runs apply: what they gave up is free."""
    grants = [Grant(task_id, fence) for task_id, fence in body.fences.items()]
    answers = await request.store.shortened(worker_id(request), *grants)
    return {"results": [_accepted(*pair) for pair in zip(body.fences, answers, strict=True)]}


@routes.post(
    "/frames",
    operation_id="worker_calls_frames",
    refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
)
async def frames(request: Request, body: FramesBody) -> FramesAnswer:
    """Get the next frames of the client of an interactive task, up to 16.

    The handler has those up to `after`: they are deleted.
    """
    grant = Grant(body.task_id, body.fence)
    taken = await request.store.take_frames(worker_id(request), grant, body.after)
    return FramesAnswer(frames=[*map(FrameOfClient.from_value, taken)])


@routes.post("/progress", operation_id="worker_calls_say", most_body=BATCH_BODY, answer=SayAnswer)
async def progress(request: Request, body: SayBody) -> Json:
    """Report the progress and the output of runs."""
    rows = list[Json]()
    # read and reported together; one with much output alone
    for some in bounded_parts(body.reports, lambda one: (sum(map(size_of, one.output)),), (AT_ONCE,)):
        answers = await (
            _report_in_pieces(request, some[0]) if len(some) == 1 else _report_progress(request, some)
        )
        rows += [_accepted(one.task_id, answer) for one, answer in zip(some, answers, strict=True)]
    return {"results": rows}


Answers = list[errors.FairleadError | None]


async def _report_progress(request: Request, some: Sequence[TaskProgressBody]) -> Answers:
    read = [_progress(one) for one in some]
    good = [one for one in read if isinstance(one, Progress)]
    answers = iter(await request.store.progress(worker_id(request), *good))
    return [next(answers) if isinstance(one, Progress) else one for one in read]


async def _report_in_pieces(request: Request, report: TaskProgressBody) -> Answers:
    """A few chunks at a time. All are read before the first is reported: if one is refused, all are."""
    pieces = list(_pieces(report))
    if len(pieces) > 1:
        async for read in taking_turns(map(_progress, pieces)):
            problem = _problem(read)
            if problem:
                return [problem]
    async for piece in taking_turns(pieces):
        (answer,) = await _report_progress(request, [piece])
        if answer:
            return [answer]
    return [None]


def _problem(read: Progress | errors.FairleadError) -> errors.FairleadError | None:
    if isinstance(read, errors.FairleadError):
        return read
    try:
        read.packed()
    except errors.InvalidInput as problem:
        return problem
    return None


def _pieces(report: TaskProgressBody) -> Iterator[TaskProgressBody]:
    sent = 0
    for chunks in [*in_groups(report.output)] or [[]]:
        first = None if report.first is None else report.first + sent
        yield replace(report, output=chunks, first=first)
        report = replace(report, fraction=None, message="")  # the first piece has them
        sent += len(chunks)


def _progress(one: TaskProgressBody) -> Progress | errors.FairleadError:
    try:
        chunks = [decode_item(chunk, ANYTHING, f"output[{i}]") for i, chunk in enumerate(one.output)]
    except errors.FairleadError as problem:
        return problem
    return Progress(one.task_id, one.fence, one.fraction, one.message, chunks, one.first)
