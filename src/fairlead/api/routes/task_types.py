"""Task types: list those that are declared or paused, pause and resume them."""

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.checks import check_name
from fairlead.model.forecast import TypeLoad
from fairlead.shapes.base import LongPageQuery
from fairlead.shapes.task_type import PauseBody, TaskTypeAnswer, TaskTypesAnswer

IDLE = TypeLoad()

routes = Routes("/api/v1/task-types")


@routes.get(scope="read")
async def find(request: Request, query: LongPageQuery) -> TaskTypesAnswer:
    """List the task types that are declared or paused, or have tasks that wait or run."""
    loads = await request.store.pressures.types(request.caller.tenant)
    types = dict.fromkeys(loads or ()) | await request.store.task_types()
    known = [one for one in sorted(types.items()) if one[0] > query.cursor]
    page = known[: query.limit]
    more = len(known) > len(page)
    return TaskTypesAnswer(
        task_types=[
            TaskTypeAnswer.of(*one, None if loads is None else loads.get(one[0], IDLE)) for one in page
        ],
        next_cursor=page[-1][0] if more else None,
    )


@routes.put("/{name}", scope="admin", for_all_tenants=True, refusals=(errors.InvalidInput,))
async def put(request: Request, body: PauseBody) -> TaskTypeAnswer:
    """Pause a task type, so that none of its tasks start, or resume it."""
    task_type = request.path["name"]
    check_name("task_type", task_type)
    before = (await request.store.task_types()).get(task_type) is not None
    await request.store.pause_type(task_type, body.paused)
    act = "pause_type" if body.paused else "resume_type"
    await request.audit(act, task_type, {"paused": before}, {"paused": body.paused})
    return TaskTypeAnswer.of(task_type, (await request.store.task_types()).get(task_type))
