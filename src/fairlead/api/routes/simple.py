"""The smallest way in: two addresses for a browser or a curl, and whether the server is well."""

from fairlead import __version__, errors
from fairlead.api.priorities import priority_of
from fairlead.api.problems import NotReady
from fairlead.api.request import Request
from fairlead.api.table import Route
from fairlead.model.task import NewTask, Task
from fairlead.shapes.base import Json
from fairlead.shapes.problem import HealthAnswer, ReadyAnswer
from fairlead.shapes.task import SimpleAnswer, SimpleQuery

TASK_TYPE = "task"  # what `GET /task` submits


async def submit(request: Request) -> Json:
    """Queue a task of the type `task` with this priority."""
    await request.gateway.spend(request.caller, 1)
    priority, _ = priority_of(request, request.query.priority)
    wanted = NewTask(task_type=TASK_TYPE, priority=priority, tenant=request.caller.tenant)
    submitted = await request.gateway.batcher.submit(wanted)
    return {"task_id": submitted.task_id, "status": submitted.status, "priority": wanted.priority}


async def get(request: Request) -> Json:
    """How that task is."""
    task: Task = await request.gateway.own_task(request.caller, request.path["task_id"])
    return {
        "task_id": task.task_id,
        "status": task.status,
        "priority": task.priority.word,
        "result": task.result,
    }


async def healthz(request: Request) -> Json:
    """This process runs."""
    return {"status": "ok", "version": __version__}


async def readyz(request: Request) -> Json:
    """The store can be reached, and nothing else keeps this server from its work; operators see what does."""
    try:
        request.gateway.readiness.check()
    except NotReady:
        request.caller = await request.gateway.recognise(request.headers.get("authorization"))
        raise
    await request.gateway.store.check_open()
    return {"status": "ready"}


ROUTES = (
    Route(
        method="GET",
        path="/task",
        scope="submit",
        handler=submit,
        query=SimpleQuery,
        answer=SimpleAnswer,
        has_effect=True,
        refusals=(errors.QueueFull, errors.RateLimited),
    ),
    Route(
        method="GET",
        path="/task/{task_id}",
        scope="read",
        handler=get,
        answer=SimpleAnswer,
        refusals=(errors.UnknownTask,),
    ),
    Route(method="GET", path="/healthz", scope=None, handler=healthz, answer=HealthAnswer),
    Route(
        method="GET",
        path="/readyz",
        scope=None,
        handler=readyz,
        answer=ReadyAnswer,
        refusals=(errors.StoreUnavailable, NotReady),
    ),
)
