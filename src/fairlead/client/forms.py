"""Values of the store as a gateway takes them, and many of them in bodies that it accepts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairlead.checks import to_json
from fairlead.client.problems import error_of
from fairlead.client.transport import encode
from fairlead.errors import FairleadError, InvalidInput
from fairlead.log.tracebacks import readable
from fairlead.model.job import NewJob
from fairlead.model.limit import limit_arguments
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted, check
from fairlead.settings import LimitSettings, Rate, Slots, TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.settings.rates import rate_text
from fairlead.shapes.base import Json
from fairlead.shapes.task import BatchItem
from fairlead.shapes.worker import Accepted
from fairlead.times import time_text

MOST_BYTES = 8 * 1024 * 1024  # of the items of one body; the gateway takes twice as much
MOST_DECLARED = 200 * 1024  # bytes of the entries of one declaration; the gateway takes 256 KiB
MOST_ITEMS = 1000

OF_THE_GATEWAY = "is found by the gateway: leave it out"
OF_THE_KEY = "is that of the key: leave it out, and use a key of this tenant"

T = TypeVar("T")
U = TypeVar("U")
#: Fields of a task that are sent as they are, if they are given.
APART = {"parameters", "priority", "priority_asked", "by_tenant", "weight", "run_at"}
PLAIN = set(NewTask.__struct_fields__) - APART


def task_form(task: NewTask) -> Json:
    """Raises what the store would, before anything is sent."""
    check(task)
    if task.tenant is not None:
        raise InvalidInput("tenant", OF_THE_KEY)
    if task.weight is not None:
        raise InvalidInput("weight", OF_THE_GATEWAY)
    form = {name: value for name in PLAIN if (value := getattr(task, name))}
    for name in ("delay_seconds", "max_retries"):  # here 0 says something
        if getattr(task, name) is not None:
            form[name] = getattr(task, name)
    form["parameters"] = raw("parameters", task.parameters)
    if task.priority_asked:  # else the gateway finds it
        form["priority"] = task.priority
    if task.run_at is not None:
        form["run_at"] = time_text(task.run_at)
    return form


def job_form(job: NewJob) -> Json:
    """Its stages are left out: the gateway knows its pipeline."""
    if job.tenant is not None:
        raise InvalidInput("tenant", OF_THE_KEY)
    if job.weight is not None:
        raise InvalidInput("weight", OF_THE_GATEWAY)
    optional = ("user_id", "max_wait_seconds", "idempotency_key", "trace_id")
    form: Json = {name: value for name in optional if (value := getattr(job, name)) is not None}
    form |= {"feature_name": job.feature_name, "job_id": job.job_id}
    form["input_data"] = raw("input_data", job.input_data)
    if job.priority_asked:  # else the gateway finds it
        form["priority"] = job.priority
    return form


def raw(field: str, value: object) -> msgspec.Raw:
    return msgspec.Raw(to_json(field, value).encode())


def completed_form(report: Completed) -> Json:
    form = {"task_id": report.task_id, "status": "completed", "result": raw("result", report.result)}
    return form | _fence(report.fence)


def failed_form(report: Failed) -> Json:
    error: Json = {
        "code": readable(report.code)[:200] or "error",
        "message": readable(report.message)[:4000],
        "retriable": report.retriable,
        "retry_after_seconds": report.retry_after_ms / 1000,
        "crashed": report.crashed,
    }
    if report.traceback:
        error["traceback"] = report.traceback
    return {"task_id": report.task_id, "status": "failed", "error": error} | _fence(report.fence)


def progress_form(report: Progress) -> Json:
    report.packed()  # raises what the store would
    form: Json = {"task_id": report.task_id, "message": readable(report.message)[:4000]}
    if report.fraction is not None:
        form["fraction"] = report.fraction
    if report.chunks:
        form["output"] = list(report.chunks)
    if report.first is not None:
        form["first"] = report.first
    return form | _fence(report.fence)


def grants_form(grants: Sequence[Grant]) -> Json:
    fences = {grant.id: grant.fence for grant in grants if grant.fence is not None}
    return {"task_ids": [grant.id for grant in grants], "fences": fences}


def limit_form(name: str, wanted: LimitSettings, shared: bool | None = None) -> Json:
    limit_arguments(name, wanted)  # raises what the store would
    sharing = {} if shared is None and not wanted.shared else {"shared": shared or wanted.shared}
    if isinstance(wanted, Slots):
        return {"limit": wanted.limit, **sharing}
    assert isinstance(wanted, Rate)
    return {"rate": rate_text(wanted.interval_us), "burst": wanted.burst, **sharing}


def type_form(wanted: TaskSettings) -> Json:
    return {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) is not None}


def declared_bodies(tables: Mapping[str, Mapping[str, Any]]) -> list[Json]:
    """What code declares, in as few bodies as the gateway accepts; what comes first is declared first."""
    bodies: list[Json] = [{}]
    size = count = 0
    for table, forms in tables.items():
        for name, form in forms.items():
            item = msgspec.Raw(encode(form))
            length = len(memoryview(item)) + len(name) + len('"":,')
            if size + length > MOST_DECLARED or count == MOST_ITEMS:
                bodies.append({})
                size = count = 0
            bodies[-1].setdefault(table, {})[name] = item
            size, count = size + length, count + 1
    return bodies


def stages_form(stages: Stages) -> list[Any]:
    """As they are written: a step by its name, several beside each other as `parallel`."""
    return [stage[0] if len(stage) == 1 else {"parallel": list(stage)} for stage in stages]


def _fence(fence: int | None) -> Json:
    return {} if fence is None else {"fence": fence}


class Batch:
    """Things to send, each as JSON, in as few bodies as the gateway accepts.

    What cannot be sent is answered with its error, and does not spoil the rest.
    """

    def __init__(self, things: Iterable[T], form: Callable[[T], Json]) -> None:
        self._accepted: list[msgspec.Raw] = []
        self._problems: list[InvalidInput | None] = []
        for thing in things:
            try:
                self._accepted.append(msgspec.Raw(encode(form(thing))))
                self._problems.append(None)
            except InvalidInput as problem:
                self._problems.append(problem)

    def bodies(self) -> list[list[msgspec.Raw]]:
        bodies: list[list[msgspec.Raw]] = []
        size = 0
        for item in self._accepted:
            length = len(memoryview(item))
            if not bodies or size + length > MOST_BYTES or len(bodies[-1]) == MOST_ITEMS:
                bodies.append([])
                size = 0
            bodies[-1].append(item)
            size += length
        return bodies

    def answers(self, replies: Iterable[U]) -> list[U | FairleadError]:
        """In the order in which was asked."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self._problems]


def state_or_error(row: Accepted) -> State | FairleadError:
    return none_or_error(row) or State(row.status or "")


def none_or_error(row: Accepted | BatchItem) -> FairleadError | None:
    return error_of(msgspec.to_builtins(row.error)) if row.error else None


def submitted_or_error(row: BatchItem) -> Submitted | FairleadError:
    return none_or_error(row) or row.to_value()
