"""The smallest interface: two routes for a browser or curl, and the health of the server."""

from fairlead import __version__, errors
from fairlead.api.gateway import NAMESPACE, Gateway
from fairlead.api.priorities import priority_of
from fairlead.api.problems import NotReady
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.errors import FairleadError
from fairlead.model.task import NewTask
from fairlead.shapes.base import Json
from fairlead.shapes.problem import HealthAnswer, ReadyAnswer, WarningAnswer
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
    wanted = NewTask(
        task_type=TASK_TYPE,
        priority=priority,
        tenant=request.caller.tenant,
        trace_id=request.trace_id,
        traceparent=request.traceparent,
    )
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


@routes.get("/readyz", scope=None, refusals=(errors.StoreUnavailable, errors.UnknownNamespace, NotReady))
async def readyz(request: Request) -> ReadyAnswer:
    """Check that the store can be reached and that the server can work; operators see why it cannot.

    One that serves several namespaces is ready while any of them is; with Fairlead-Namespace, or a key, it is
    about that one.
    """
    gateway, headers = request.gateway, request.headers
    if headers.get(NAMESPACE, gateway.namespace) != gateway.namespace:
        raise errors.UnknownNamespace()
    is_named = NAMESPACE in headers or "authorization" in headers
    asked = {} if is_named else {name: one for name, one in gateway.family.items() if one is not gateway}
    problems = {name: problem for name, one in asked.items() if (problem := await _problem_of(one))}
    if problem := await _problem_of(gateway):
        problems[gateway.namespace] = problem
    warnings = {name: one.readiness.warnings for name, one in (asked | {gateway.namespace: gateway}).items()}
    if problems or any(warnings.values()):
        request.caller = await gateway.recognise(headers.get("authorization"))
    if problem and len(problems) > len(asked):
        raise problem
    to_operator = gateway.is_operator(request.caller)
    return ReadyAnswer(
        status="ready",
        not_ready=sorted(problems) if to_operator else [],
        warnings=[
            WarningAnswer(code=code, message=message, namespace=name if asked else None)
            for name, found in (warnings if to_operator else {}).items()
            for code, message in found.items()
        ],
    )


async def _problem_of(gateway: Gateway) -> FairleadError | None:
    try:
        gateway.readiness.check()
        await gateway.store.check_open()
    except FairleadError as problem:
        return problem
    return None
