"""The smallest interface: two routes for a browser or curl, and the health of the server."""

from fairlead import __version__, errors
from fairlead.api.priorities import priority_of
from fairlead.api.problems import NotReady
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.task import NewTask
from fairlead.shapes.base import Json
from fairlead.shapes.problem import HealthAnswer, ReadyAnswer
from fairlead.shapes.task import SimpleAnswer, SimpleQuery

TASK_TYPE = "task"  # what `GET /task` submits

routes = Routes()


@routes.get(
    "/task",
    scope="submit",
    has_effect=True,
    refusals=(errors.QueueFull, errors.WaitTooLong, errors.RateLimited),
    answer=SimpleAnswer,
)
async def submit(request: Request, query: SimpleQuery) -> Json:
    """Queue a task of the type `task` with this priority."""
    await request.gateway.spend(request.caller, 1)
    priority, _ = priority_of(request, query.priority)
    wanted = NewTask(task_type=TASK_TYPE, priority=priority, tenant=request.caller.tenant)
    submitted = await request.gateway.batcher.submit(wanted)
    return {"task_id": submitted.task_id, "status": submitted.status, "priority": wanted.priority}


@routes.get("/task/{task_id}", scope="read", refusals=(errors.UnknownTask,))
async def get(request: Request) -> SimpleAnswer:
    """Get the status and the result of a task."""
    return SimpleAnswer.from_value(await request.own_task(request.path["task_id"]))


@routes.get("/healthz", scope=None)
async def healthz(request: Request) -> HealthAnswer:
    """Check that this process runs."""
    return HealthAnswer(status="ok", version=__version__)


@routes.get("/readyz", scope=None, refusals=(errors.StoreUnavailable, NotReady))
async def readyz(request: Request) -> ReadyAnswer:
    """Check that the store can be reached and that the server can work; operators see why it cannot."""
    try:
        request.gateway.readiness.check()
    except NotReady:
        request.caller = await request.gateway.recognise(request.headers.get("authorization"))
        raise
    await request.store.check_open()
    return ReadyAnswer(status="ready")
