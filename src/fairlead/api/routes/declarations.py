"""Declarations by the code of a worker: task types, limits, pipelines and periodic tasks."""

from typing import Any

from msgspec.structs import asdict

from fairlead import errors
from fairlead.api.problems import InvalidBody
from fairlead.api.request import Request, taking_turns
from fairlead.api.routes.limits import wanted_limit
from fairlead.api.routes.tasks import REFUSED, accepted, new_task
from fairlead.api.table import Routes
from fairlead.settings import LimitSettings, TaskSettings
from fairlead.settings.pipelines import Stages, read_stages
from fairlead.shapes.base import Moment
from fairlead.shapes.cron import CronBody, LastTickAnswer, TickAnswer, TickBody
from fairlead.shapes.declaration import ConfirmAnswer, ConfirmBody, DeclareAnswer, DeclareBody
from fairlead.shapes.limit import LimitBody
from fairlead.times import read_time, time_text

routes = Routes("/internal", scope="worker", for_all_tenants=True, refusals=(errors.InvalidInput,))


@routes.put("/declarations")
async def declare(request: Request, body: DeclareBody) -> DeclareAnswer:
    """Declare the defaults of task types, the limits and the pipelines; settings of an operator prevail."""
    store = request.store
    types = {name: TaskSettings(**asdict(one)) for name, one in body.types.items()}
    limits = {name: _limit(name, one) for name, one in body.limits.items()}
    pipelines = {name: _stages(name, steps) async for name, steps in taking_turns(body.pipelines.items())}
    await store.declare("code", types, limits, pipelines)
    return DeclareAnswer(
        heartbeat_seconds=store.settings.worker.heartbeat_seconds,
        lease_seconds=store.settings.lease_ms / 1000,
    )


@routes.post("/declarations/confirm")
async def confirm(request: Request, body: ConfirmBody) -> ConfirmAnswer:
    """Keep what code has declared: task types and pipelines are forgotten a day after they were confirmed."""
    return ConfirmAnswer(all_known=await request.store.confirm(body.types, body.pipelines))


def _limit(name: str, body: LimitBody) -> LimitSettings:
    try:
        return wanted_limit(body)
    except InvalidBody as problem:
        raise InvalidBody(f"limits.{name}.{problem.field}", problem.reason) from None


def _stages(name: str, steps: list[Any]) -> Stages:
    try:
        return read_stages(steps)
    except ValueError as problem:
        raise InvalidBody(f"pipelines.{name}", str(problem)) from None


@routes.post("/crons/{name}")
async def last_tick(request: Request, body: CronBody | None) -> LastTickAnswer:
    """Get the last tick of a periodic task; a new one starts now.

    The schedule is kept for the list of crons.
    """
    name, declared = request.path["name"], (body.schedule, body.timezone) if body else ()
    last, now = await request.store.crons.last(name, *declared)
    return LastTickAnswer(name=name, last=Moment(time_text(last)), now=Moment(time_text(now)))


@routes.post("/crons/{name}/tick", refusals=REFUSED, answer=TickAnswer)
async def tick(request: Request, body: TickBody) -> dict[str, Any]:
    """Submit the task of a tick, unless another process was first: then `submitted` is null."""
    previous, at = read_time("previous", body.previous), read_time("tick", body.tick)
    task = new_task(request, body.task, {}, trusted=True)
    submitted = await request.store.crons.tick(request.path["name"], previous, at, task)
    return {"submitted": None if submitted is None else accepted(submitted)}
