"""Tasks: submit, get, list, cancel, explain."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from fairlead import errors
from fairlead.api.priorities import priority_of
from fairlead.api.priority_service import Terms
from fairlead.api.problems import problem_of
from fairlead.api.request import BATCH_BODY, Request, decode_item, in_groups, taking_turns
from fairlead.api.routes.limits import tenant_of
from fairlead.api.table import Routes
from fairlead.model.states import WAITING
from fairlead.model.task import NewTask, Submitted
from fairlead.model.tenants import id_of
from fairlead.shapes.base import Json
from fairlead.shapes.estimate import shown_estimate
from fairlead.shapes.live import EventsQuery
from fairlead.shapes.promotion import PromotionAnswer, PromotionsAnswer, PromotionsQuery
from fairlead.shapes.stats import StatsAnswer
from fairlead.shapes.task import (
    BatchAnswer,
    BatchBody,
    CancelAnswer,
    ExplainAnswer,
    FrameAnswer,
    FrameBody,
    ItsUser,
    OutputAnswer,
    OutputsAnswer,
    SubmitAnswer,
    SubmitBody,
    TaskAnswer,
    TaskQuery,
    TasksAnswer,
)
from fairlead.shapes.task_history import HistoryAnswer
from fairlead.times import read_time

SUBMIT_BODY = msgspec.json.Decoder(SubmitBody)
ITS_USER = msgspec.json.Decoder(ItsUser)
REFUSED = (
    errors.InvalidInput,
    errors.IdempotencyConflict,
    errors.NoCapacity,
    errors.DeadlineUnlikely,
    errors.QueueFull,
    errors.WaitTooLong,
    errors.RateLimited,
)
UNKNOWN = (errors.UnknownTask,)

routes = Routes("/api/v1", scope="read")


@routes.post("/tasks", scope="submit", status=201, refusals=REFUSED)
async def submit(request: Request, body: SubmitBody) -> SubmitAnswer:
    """Submit a task."""
    await request.gateway.spend(request.caller, 1)
    terms = await terms_of(request, [body.user_id])
    wanted = new_task(request, body, terms, key_of(request, body.idempotency_key))
    submitted = await request.gateway.batcher.submit(wanted)
    if submitted.repeated:
        request.status = 200
        return await _as_it_is(request, submitted, wanted)
    return SubmitAnswer.from_value(submitted, priority=wanted.priority, effective_priority=wanted.priority)


async def _as_it_is(request: Request, submitted: Submitted, wanted: NewTask) -> SubmitAnswer:
    """Repeats the first answer: the same unless the task has changed."""
    task_id = submitted.task_id
    try:
        task = await request.store.get(task_id)
        explanation = await request.store.explain(task_id, brief=True)
    except errors.UnknownTask:  # its key outlives it
        return _as_it_was(submitted, wanted)
    return SubmitAnswer.from_value(
        submitted,
        status=task.status,
        priority=task.priority.word,
        effective_priority=task.effective_priority.word,
        queue_position=explanation.queue_position,
        estimate=shown_estimate(explanation.estimate),
        blocked_by=[blocker.limit for blocker in explanation.blocked_by],
    )


def _as_it_was(submitted: Submitted, wanted: NewTask) -> SubmitAnswer:
    priority, effective = submitted.priority, submitted.effective_priority
    return SubmitAnswer.from_value(
        submitted,
        priority=wanted.priority if priority is None else priority.word,
        effective_priority=wanted.priority if effective is None else effective.word,
    )


@routes.post(
    "/tasks/batch",
    scope="submit",
    status=201,
    most_body=BATCH_BODY,
    refusals=(errors.RateLimited,),
    answer=BatchAnswer,
)
async def submit_batch(request: Request, body: BatchBody) -> Json:
    """Submit up to 1,000 tasks; each is accepted or refused on its own."""
    items = body.tasks
    await request.gateway.spend(request.caller, len(items))
    terms = await terms_of(request, await _users_of(request, items))
    answers: list[Submitted | errors.FairleadError] = []
    async for group in taking_turns(in_groups(items)):
        try:
            answers += await _submit_group(request, group, terms)
        except (errors.StoreUnavailable, errors.StoreFault) as problem:
            if not answers:
                raise
            answers += [problem] * (len(items) - len(answers))  # what was accepted before stays accepted
            break
    return {"tasks": [accepted(answer) for answer in answers]}


async def _submit_group(
    request: Request, group: Sequence[msgspec.Raw], terms: Mapping[str, Terms]
) -> list[Submitted | errors.FairleadError]:
    wanted: list[NewTask | errors.FairleadError] = []
    for item in group:
        try:
            wanted.append(new_task(request, decode_item(item, SUBMIT_BODY), terms))
        except errors.FairleadError as problem:
            wanted.append(problem)
    await asyncio.sleep(0)  # the tasks are packed in another turn of the event loop
    new = [one for one in wanted if isinstance(one, NewTask)]
    submitted = iter(await request.store.submit(*new) if new else [])
    return [next(submitted) if isinstance(one, NewTask) else one for one in wanted]


async def _users_of(request: Request, items: Sequence[msgspec.Raw]) -> Iterable[str]:
    """All users, in the order of their tasks: the priority service is asked once for all."""
    found: dict[str, None] = {}
    if request.gateway.priorities:
        async for group in taking_turns(in_groups(items)):
            for item in group:
                with contextlib.suppress(errors.FairleadError):  # it is refused when its turn comes
                    if user_id := decode_item(item, ITS_USER).user_id:
                        found[user_id] = None
    return found


def accepted(answer: Submitted | errors.FairleadError) -> Json:
    if isinstance(answer, errors.FairleadError):
        return {"error": problem_of(answer).body}
    return {
        "task_id": answer.task_id,
        "status": answer.status,
        "queue_position": answer.queue_position,
        "estimate": shown_estimate(answer.estimate),
        "blocked_by": answer.blocked_by,
        "warnings": answer.warnings,
        "repeated": answer.repeated,
    }


async def terms_of(request: Request, user_ids: Iterable[str | None]) -> dict[str, Terms]:
    """The terms of these users, if there is a priority service.

    Also if their tasks name a priority, because clients do not choose the weight.
    """
    service = request.gateway.priorities
    if service is None:
        return {}
    return await service.terms_of(user_id for user_id in user_ids if user_id)


def new_task(
    request: Request,
    body: SubmitBody,
    terms: Mapping[str, Terms],
    key: str | None = None,
    *,
    trusted: bool = False,
) -> NewTask:
    given: dict[str, Any] = {name: value for name, value in asdict(body).items() if value is not None}
    given["required_capabilities"] = tuple(body.required_capabilities)
    given |= {"tenant": request.caller.tenant, "by_tenant": request.caller.tenant is not None}
    if body.task_id is not None:
        given["task_id"] = id_of(request.caller.tenant, body.task_id)
    found = terms.get(body.user_id or "")
    given["priority"], given["priority_asked"] = priority_of(request, body.priority, found, trusted=trusted)
    if found and found.weight is not None:
        given["weight"] = found.weight
    if body.run_at is not None:
        given["run_at"] = read_time("run_at", body.run_at)
    if key is not None:
        given["idempotency_key"] = key
    if traceparent := request.traceparent:
        given = {"trace_id": request.trace_id, **given, "traceparent": traceparent}
    return NewTask(**given)


def key_of(request: Request, given: str | None) -> str | None:
    """The idempotency key of the body or the header."""
    key = request.headers.get("idempotency-key")
    if key is not None and given not in (None, key):
        raise errors.InvalidInput("idempotency_key", "differs from the Idempotency-Key header")
    return given if key is None else key


@routes.get("/tasks")
async def find(request: Request, query: TaskQuery) -> TasksAnswer:
    """List the tasks that match, newest first, page by page; a page ends early at 1 MiB."""
    wanted = query.wanted | {"tenant": tenant_of(request, query.tenant)}
    page = await request.store.list_tasks(**wanted, content=msgspec.Raw)
    waiting = (task.task_id for task in page.tasks if task.status in WAITING)
    found = await request.store.estimates_of(*waiting)
    tasks = [
        TaskAnswer.from_value(task, estimate=shown_estimate(found.get(task.task_id))) for task in page.tasks
    ]
    return TasksAnswer(tasks=tasks, next_cursor=page.next_cursor or None, warnings=page.warnings)


@routes.get("/tasks/{task_id}", refusals=UNKNOWN)
async def get(request: Request) -> TaskAnswer:
    """Get a task, with its result when it has ended."""
    task = await request.own_task(request.path["task_id"])
    if task.status not in WAITING:
        return TaskAnswer.from_value(task)
    explanation = await request.store.explain(task.task_id, brief=True)
    position, estimate = explanation.queue_position, shown_estimate(explanation.estimate)
    return TaskAnswer.from_value(task, queue_position=position, estimate=estimate)


@routes.get("/tasks/{task_id}/history", refusals=(*UNKNOWN, errors.NoHistory, errors.HistoryUnavailable))
async def history(request: Request) -> HistoryAnswer:
    """Get what has happened to a task: its events, and its runs with their errors and tracebacks."""
    task = await request.own_task(request.path["task_id"])
    return HistoryAnswer.from_value(await request.store.history(task.task_id))


@routes.delete("/tasks/{task_id}", scope="cancel", refusals=(errors.UnknownTask, errors.AlreadyFinished))
async def cancel(request: Request) -> CancelAnswer:
    """Cancel a task, even while it runs."""
    task = await request.own_task(request.path["task_id"])
    worker = await request.store.cancel(task.task_id)
    return CancelAnswer(task_id=task.task_id, status="cancelled", worker_id=worker)


@routes.post(
    "/tasks/{task_id}/frames",
    scope="submit",
    status=201,
    refusals=(
        *UNKNOWN,
        errors.InvalidInput,
        errors.NotInteractive,
        errors.AlreadyFinished,
        errors.FramesFull,
    ),
)
async def send_frame(request: Request, body: FrameBody) -> FrameAnswer:
    """Send a frame to the handler of an interactive task, without a socket."""
    task = await request.own_task(request.path["task_id"])
    return FrameAnswer(seq=await request.store.send_frame(task.task_id, body.frame))


@routes.get("/tasks/{task_id}/explain", refusals=UNKNOWN)
async def explain(request: Request) -> ExplainAnswer:
    """Explain why a task waits and what must happen before it starts."""
    task = await request.own_task(request.path["task_id"])
    explanation = await request.store.explain(task.task_id)
    if request.caller.tenant is not None:
        explanation = explanation.seen_by(request.caller.tenant)
    return ExplainAnswer.from_value(explanation)


@routes.get("/tasks/{task_id}/outputs", refusals=UNKNOWN)
async def outputs(request: Request, query: EventsQuery) -> OutputsAnswer:
    """Get the output that is kept (the latest 1,000 chunks) after the message with this seq, up to 1 MiB."""
    task = await request.own_task(request.path["task_id"])
    kept, more = await request.store.output_page(
        task.task_id, after_event=query.after or 0, content=msgspec.Raw
    )
    outputs = [OutputAnswer.from_value(one, seq=one.event_seq) for one in kept]
    return OutputsAnswer(outputs=outputs, next_after=kept[-1].event_seq if more else None)


@routes.get("/queue/promotions")
async def promotions(request: Request, query: PromotionsQuery) -> PromotionsAnswer:
    """List the waiting tasks that will be promoted next because of their age."""
    found = await request.store.promotions(query.limit, tenant=request.caller.tenant)
    return PromotionsAnswer(promotions=[*map(PromotionAnswer.from_value, found)])


@routes.get("/queue/stats")
async def stats(request: Request) -> StatsAnswer:
    """Count what waits, runs and ended lately; a tenant's key counts what belongs to the tenant."""
    return StatsAnswer.from_value(await request.store.stats(request.caller.tenant, brief=True))
