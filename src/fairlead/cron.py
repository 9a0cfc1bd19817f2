"""Periodic tasks: when a cron expression ticks, and which ticks are to be submitted now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import takewhile
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from fairlead.checks import check_name, check_short, to_json
from fairlead.errors import InvalidInput
from fairlead.model.task import NewTask, check
from fairlead.times import time_text

Missed = Literal["skip", "last", "all"]
MOST_MISSED = 1000
MINUTE = 60_000  # ms: no two ticks are closer to each other
#: What may be wished for the task of every tick. The others make one task, or belong to one.
OF_ONE = {"task_type", "task_id", "by_tenant", "weight", "idempotency_key", "run_at"}
WISHES = set(NewTask.__struct_fields__) - OF_ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A task that is submitted at every tick of an expression, by one process of however many."""

    name: str
    expression: str  # minute, hour, day of month, month, day of week
    task_type: str
    timezone: str = "UTC"
    missed: Missed = "last"  # of the ticks nobody submitted in their minute: none, the latest, or each
    wishes: Mapping[str, Any] = field(default_factory=dict)  # other fields of each NewTask
    tick_parameter: str | None = None  # the parameter that receives the tick

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if self.missed not in get_args(Missed):
            raise InvalidInput("missed", f"{self.missed!r} is not one of {', '.join(get_args(Missed))}")
        _zone(self.timezone)
        _check_expression(self)
        _check_wishes(self.wishes)
        check_short("tick_parameter", self.tick_parameter)
        check(NewTask(task_type=self.task_type, **self.wishes))
        to_json("parameters", self.new_task(0).parameters)

    def new_task(self, tick_ms: int) -> NewTask:
        task = NewTask(task_type=self.task_type, **self.wishes)
        if self.tick_parameter is None:
            return task
        parameters = {**task.parameters, self.tick_parameter: time_text(tick_ms)}
        return msgspec.structs.replace(task, parameters=parameters)


def next_tick(cron: Cron, after_ms: int) -> int:
    return next(_ticks(cron, after_ms))


def due(cron: Cron, last_ms: int, now_ms: int) -> list[int]:
    """The ticks after the last one that are to be submitted now, the oldest first."""
    if cron.missed == "skip":
        last_ms = max(last_ms, now_ms - MINUTE)
    if next_tick(cron, last_ms) > now_ms:
        return []
    most = MOST_MISSED if cron.missed == "all" else 1
    span = most * MINUTE
    while True:  # in growing spans back from now: nobody walks through every minute of a year of downtime
        start = max(last_ms, now_ms - span)
        ticks = list(takewhile(lambda tick: tick <= now_ms, _ticks(cron, start)))
        if start == last_ms or len(ticks) >= most:
            return ticks[-most:]
        span *= 2


def _ticks(cron: Cron, after_ms: int) -> Iterator[int]:
    start = datetime.fromtimestamp(after_ms // 1000, _zone(cron.timezone))
    for moment in CronSim(cron.expression, start):
        tick = int(moment.timestamp()) * 1000
        if tick > after_ms:  # begun in an hour that is repeated, cronsim names the first pass, which is over
            yield tick
            after_ms = tick


def _zone(name: object) -> tzinfo:
    if name == "UTC":  # needs no time zone data, which a slim machine may not have
        return UTC
    try:
        if isinstance(name, str):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder, such as Europe
        pass
    raise InvalidInput(
        "timezone", f"{name!r} is not known here: use a name like Europe/Berlin (or install tzdata)"
    )


def _check_expression(cron: Cron) -> None:
    expression = cron.expression
    hint = "give minute, hour, day of month, month and day of week, such as */5 * * * *"
    if not isinstance(expression, str) or len(expression) > 200 or len(expression.split()) != 5:
        raise InvalidInput("expression", f"is not five fields: {hint}")
    try:
        some_tick = next(_ticks(cron, 946_684_800_000), None)  # what does not come in the 50 years from 2000
    except CronSimError as problem:
        reason = str(problem).replace("Bad", "bad")
        raise InvalidInput("expression", f"{expression!r} has a {reason}: {hint}") from None
    if some_tick is None:
        raise InvalidInput("expression", f"{expression!r} never comes: {hint}")


def _check_wishes(wishes: object) -> None:
    if not isinstance(wishes, Mapping):
        raise InvalidInput("wishes", "is not a table of fields of a task")
    for wish in wishes:
        if wish not in WISHES:
            raise InvalidInput(
                f"wishes.{wish}", f"cannot be the same for every tick: use {', '.join(sorted(WISHES))}"
            )
