"""The last hour as a series, for the figures of the dashboard."""

from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.shapes.series import SeriesAnswer, SeriesQuery

routes = Routes("/api/v1/queue/series", scope="read", for_all_tenants=True)


@routes.get()
async def get(request: Request, query: SeriesQuery) -> SeriesAnswer:
    """Get what waited, started and ended in the last hour, in intervals of ten seconds."""
    return SeriesAnswer.from_value(await request.store.series.last(query.seconds))
