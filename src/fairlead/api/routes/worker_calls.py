"""What a worker may say and ask while it runs tasks: wait for calls, tell, ask for time, leave."""

from fairlead import errors
from fairlead.api.answers_workers import (
    ExpireAnswer,
    ExtendAnswer,
    LeaveAnswer,
    SayAnswer,
    StallAnswer,
    WaitAnswer,
)
from fairlead.api.bodies import ExtendBody, SayBody, StallBody, TaskProgressBody, WaitBody
from fairlead.api.call import BATCH_BODY, Call
from fairlead.api.polling import wait_for_call
from fairlead.api.routes.workers import UNKNOWN, WORKER, accepted, worker_id
from fairlead.api.table import Route
from fairlead.store.reports import Grant, Progress
from fairlead.views import View, time_view


async def wait(call: Call) -> View:
    """Wait until there is something to claim, or a task is cancelled."""
    body: WaitBody = call.body
    return {"called": await wait_for_call(call, worker_id(call), body.wait_seconds)}


async def say(call: Call) -> View:
    """How far runs are, and what they put out."""
    body: SayBody = call.body
    reports = [_progress(one) for one in body.reports]
    answers = await call.gateway.store.progress(worker_id(call), *reports)
    pairs = zip(reports, answers, strict=True)
    return {"results": [accepted(report.task_id, answer) for report, answer in pairs]}


def _progress(one: TaskProgressBody) -> Progress:
    return Progress(one.task_id, one.fence, one.fraction, one.message, one.output, one.first)


async def extend(call: Call) -> View:
    """More time for a task that runs, unless it has more."""
    body: ExtendBody = call.body
    grant = Grant(body.task_id, body.fence)
    deadline = await call.gateway.store.extend(worker_id(call), grant, round(body.seconds * 1000))
    return {"task_id": body.task_id, "deadline": time_view(deadline)}


async def stall(call: Call) -> View:
    """This worker lives but does not answer: what it has not begun is queued again, and it is given nothing
    until it polls."""
    body: StallBody = call.body
    given_back = await call.gateway.store.workers.stall(worker_id(call), body.request_id, body.begun)
    return {"released": [{"task_id": grant.id, "fence": grant.fence} for grant in given_back]}


async def expire(call: Call) -> View:
    """This worker is dead for certain: what it held is free now. A task that it held alone has crashed."""
    return {"expired": await call.gateway.store.expire(worker_id(call))}


async def leave(call: Call) -> View:
    """This worker has stopped and holds nothing."""
    worker = worker_id(call)
    await call.gateway.store.workers.leave(worker)
    return {"worker_id": worker, "left": True}


ROUTES = (
    Route(
        method="POST",
        path=f"{WORKER}/wait",
        scope="worker",
        for_all_tenants=True,
        handler=wait,
        body=WaitBody,
        answer=WaitAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/progress",
        scope="worker",
        for_all_tenants=True,
        handler=say,
        body=SayBody,
        answer=SayAnswer,
        most_body=BATCH_BODY,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/extend",
        scope="worker",
        for_all_tenants=True,
        handler=extend,
        body=ExtendBody,
        answer=ExtendAnswer,
        refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
    ),
    Route(
        method="POST",
        path=f"{WORKER}/stall",
        scope="worker",
        for_all_tenants=True,
        handler=stall,
        body=StallBody,
        answer=StallAnswer,
        most_body=BATCH_BODY,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/expire",
        scope="worker",
        for_all_tenants=True,
        handler=expire,
        answer=ExpireAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="DELETE",
        path=WORKER,
        scope="worker",
        for_all_tenants=True,
        handler=leave,
        answer=LeaveAnswer,
        refusals=UNKNOWN,
    ),
)
