"""What the code of a worker declares: its types, limits and pipelines, and its periodic tasks."""

from typing import Any

from fairlead import errors
from fairlead.api.large_bodies import taking_turns
from fairlead.api.problems import InvalidBody
from fairlead.api.request import Request
from fairlead.api.routes.limits import wanted_limit
from fairlead.api.routes.tasks import REFUSED, accepted, new_task
from fairlead.api.table import Route
from fairlead.settings import LimitSettings, TaskSettings
from fairlead.settings.pipelines import Stages, read_stages
from fairlead.shapes.base import Json
from fairlead.shapes.declaration import CronAnswer, DeclareAnswer, DeclareBody, TickAnswer, TickBody, TypeBody
from fairlead.shapes.limit import LimitBody
from fairlead.times import read_time, time_text


async def declare(request: Request) -> Json:
    """Say what tasks of these types get, and which limits they need; what an operator has set stands."""
    body: DeclareBody = request.body
    store = request.gateway.store
    types = {name: _settings_of(one) for name, one in body.types.items()}
    limits = {name: _limit(name, one) for name, one in body.limits.items()}
    pipelines = {name: _stages(name, steps) async for name, steps in taking_turns(body.pipelines.items())}
    await store.declare("code", types, limits, pipelines)
    return {
        "heartbeat_seconds": store.settings.worker.heartbeat_seconds,
        "lease_seconds": store.settings.lease_ms / 1000,
    }


def _settings_of(one: TypeBody) -> TaskSettings:
    return TaskSettings(**{name: getattr(one, name) for name in one.__struct_fields__})


def _limit(name: str, body: LimitBody) -> LimitSettings:
    try:
        return wanted_limit(body)
    except InvalidBody as problem:
        raise InvalidBody([(f"limits.{name}.{field}", words) for field, words in problem.fields]) from None


def _stages(name: str, steps: list[Any]) -> Stages:
    try:
        return read_stages(steps)
    except ValueError as problem:
        raise InvalidBody([(f"pipelines.{name}", str(problem))]) from None


async def last_tick(request: Request) -> Json:
    """When a periodic task last ticked; one seen for the first time begins now."""
    last, now = await request.gateway.store.crons.last(request.path["name"])
    return {"name": request.path["name"], "last": time_text(last), "now": time_text(now)}


async def tick(request: Request) -> Json:
    """Submit the task of a tick, unless another process was first: then `submitted` is null."""
    body: TickBody = request.body
    previous, at = read_time("previous", body.previous), read_time("tick", body.tick)
    task = new_task(request, body.task, {}, trusted=True)
    submitted = await request.gateway.store.crons.tick(request.path["name"], previous, at, task)
    return {"submitted": None if submitted is None else accepted(submitted)}


CRON = "/internal/crons/{name}"

ROUTES = (
    Route(
        method="PUT",
        path="/internal/declarations",
        scope="worker",
        for_all_tenants=True,
        handler=declare,
        body=DeclareBody,
        answer=DeclareAnswer,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path=CRON,
        scope="worker",
        for_all_tenants=True,
        handler=last_tick,
        answer=CronAnswer,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path=f"{CRON}/tick",
        scope="worker",
        for_all_tenants=True,
        handler=tick,
        body=TickBody,
        answer=TickAnswer,
        refusals=REFUSED,
    ),
)
