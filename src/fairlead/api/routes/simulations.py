"""What if: the work of the last day again, under other limits."""

from collections import Counter

from fairlead import errors
from fairlead.api.problems import InvalidBody, SimulationFailed, SimulationRunning
from fairlead.api.request import Request
from fairlead.api.simulating import Past, Simulated
from fairlead.api.table import Routes
from fairlead.settings import Rate
from fairlead.shapes.base import Moment
from fairlead.shapes.simulation import (
    BucketAnswer,
    MeasuresAnswer,
    SimulatedLimit,
    SimulationAnswer,
    SimulationBody,
    SizeBody,
)
from fairlead.simulate.what_if import Size
from fairlead.times import time_text

MOST_SHOWN = 200

routes = Routes("/api/v1/simulations", scope="admin", for_all_tenants=True)


@routes.post(refusals=(errors.InvalidInput, SimulationRunning, SimulationFailed))
async def run(request: Request, body: SimulationBody | None) -> SimulationAnswer:
    """Play the work of the last day again under the limits as they are, and with other ones.

    Nothing is changed. The waits of both are in the answer.
    """
    body = body or SimulationBody()
    changes = {name: _size(name, given) for name, given in body.limits.items()}
    return _answer(await request.gateway.simulations.run(body.seconds, body.slots, changes))


def _size(name: str, given: SizeBody) -> Size:
    if (given.limit is None) == (given.rate is None):
        raise InvalidBody(f"limits.{name}", "give `limit` (slots) or `rate` (such as 60/min), one of them")
    if given.rate is None:
        assert given.limit is not None
        return Size(given.limit)
    try:
        rate = Rate.of(given.rate, given.burst)
    except ValueError as problem:
        raise InvalidBody(f"limits.{name}", str(problem)) from None
    return Size(rate.burst, rate.interval_us)


def _answer(simulated: Simulated) -> SimulationAnswer:
    past, comparison = simulated.past, simulated.comparison
    arrivals = [past.tasks[0].arrival, past.tasks[-1].arrival] if past.tasks else [None, None]
    since, until = (None if at is None else Moment(time_text(at)) for at in arrivals)
    return SimulationAnswer(
        tasks=len(past.tasks),
        since=since,
        until=until,
        slots=past.slots,
        limits=_limits(past),
        before=MeasuresAnswer.from_value(comparison.before) if comparison else None,
        after=MeasuresAnswer.from_value(comparison.after) if comparison else None,
        series=[*map(BucketAnswer.from_value, comparison.buckets)] if comparison else [],
    )


def _limits(past: Past) -> list[SimulatedLimit]:
    needed, most = Counter(name for task in past.tasks for name in task.limits), past.most_needed
    return [
        SimulatedLimit.from_value(past.limits[name], name=name, tasks=count, most_needed=most[name])
        for name, count in needed.most_common(MOST_SHOWN)
    ]
