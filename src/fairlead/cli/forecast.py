"""`fairlead forecast`: who holds each limit until when, and who is expected to start next."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.listing import LIST, ListOptions, View, show
from fairlead.cli.options import open_backend
from fairlead.cli.table import make_table
from fairlead.model.forecast import Forecast, ForecastRun, LimitForecast
from fairlead.shapes.forecast import ForecastAnswer
from fairlead.times import time_text

LIMITS = ("limit", "of", "active", "waiting", "last start", "state")
RUNS = ("limit", "slot", "task", "type", "user", "priority", "state", "start", "start p90", "end", "end p90")
LEAST_USED = ("user", "slot", "end p90", "start p90", "type")
NOTHING = "Nothing is known yet: a server (`fairlead up`) makes a forecast within seconds."


async def forecast(
    limits: Annotated[tuple[str, ...], Parameter(help="Limits; default: the longest waits.")] = (),
    /,
    *,
    seconds: Annotated[float, Parameter(help="Show starts within this time.")] = 600,
    follow: Annotated[str | None, Parameter(help="A task or job, to be followed through its limits.")] = None,
    options: ListOptions = LIST,
) -> None:
    """Show who holds each limit and until when, and who is expected to start next."""
    async with open_backend(options) as backend:

        async def read() -> View:
            found = await backend.forecast(limits, seconds=seconds, follow=follow)
            all_limits = [*([found.workers] if found.workers else []), *found.limits]
            rows = [row for limit in all_limits for row in _runs(limit)]
            tables = [make_table(LIMITS, map(_limit, all_limits))]
            tables += [make_table(RUNS, rows, LEAST_USED)] if rows else []
            return View(ForecastAnswer.from_value(found), tables, _note(found))

        await show(options, read)


def _limit(it: LimitForecast) -> tuple[object, ...]:
    last = time_text(it.last_start_p50)
    return _name(it), it.limit, it.active, it.waiting, last, "paused" if it.paused else None


def _runs(limit: LimitForecast) -> Iterator[tuple[object, ...]]:
    for track in limit.tracks:
        for run in track.runs:
            yield _name(limit), track.slot, *_run(run)


def _run(it: ForecastRun) -> tuple[object, ...]:
    times = it.start_p50, it.start_p90, it.end_p50, it.end_p90
    who = it.task_id or it.lease_id or "someone else"
    priority = it.priority.word if it.priority is not None else None
    return who, it.task_type, it.user_id, priority, it.state, *map(time_text, times)


def _name(it: LimitForecast) -> str:
    return it.name if it.tenant is None else f"{it.name} of {it.tenant}"


def _note(found: Forecast) -> str:
    if found.at is None:
        return NOTHING
    return found.follow.sentence if found.follow else ""
