"""The forecast: who holds each limit until when, and who is expected to start next."""

import contextlib
from dataclasses import replace

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.forecast import Followed
from fairlead.shapes.forecast import ForecastAnswer, ForecastQuery

routes = Routes("/api/v1/forecast", scope="read")


@routes.get(refusals=(errors.UnknownLimit, errors.UnknownTask))
async def get(request: Request, query: ForecastQuery) -> ForecastAnswer:
    """Foresee who holds each limit until when and who starts next; the 50 limits with the longest waits."""
    tenant = request.caller.tenant
    forecast = await request.store.forecasts.get(query.names, seconds=query.seconds, tenant=tenant)
    if query.follow is not None:
        forecast = replace(forecast, follow=await _follow(request, query.follow))
    return ForecastAnswer.from_value(forecast)


async def _follow(request: Request, known_id: str) -> Followed:
    tenant, following = request.caller.tenant, request.store.following
    with contextlib.suppress(errors.UnknownTask):
        return await following.task(await request.own_task(known_id), tenant)
    return await following.job(await request.own_job(known_id), tenant)
