"""Periodic tasks, for people."""

from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.shapes.base import LongPageQuery
from fairlead.shapes.cron import CronAnswer, CronsAnswer

routes = Routes("/api/v1/crons", scope="read", for_all_tenants=True)


@routes.get()
async def find(request: Request, query: LongPageQuery) -> CronsAnswer:
    """List the periodic tasks, with their schedules, last and next ticks."""
    crons, cursor = await request.store.crons.page(query.cursor, query.limit)
    return CronsAnswer(crons=[*map(CronAnswer.from_value, crons)], next_cursor=cursor or None)
