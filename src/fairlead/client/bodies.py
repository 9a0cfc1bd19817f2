"""Values of the store as the bodies of requests, and many of them in as few bodies as a gateway accepts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from fairlead.checks import to_json
from fairlead.client.problems import error_of
from fairlead.client.transport import encode
from fairlead.errors import FairleadError, InvalidInput
from fairlead.log.tracebacks import readable
from fairlead.model.batch import Batch, bounded_parts
from fairlead.model.job import NewJob
from fairlead.model.limit import limit_arguments
from fairlead.model.reports import MOST_CHUNK_BYTES, Completed, Failed, Progress
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted, check
from fairlead.settings import LimitSettings, Slots
from fairlead.settings.pipelines import Stages
from fairlead.settings.rates import rate_text
from fairlead.shapes.base import Body, Json
from fairlead.shapes.job import JobBody
from fairlead.shapes.limit import LimitBody
from fairlead.shapes.task import BatchItem, FrameBody, SubmitBody
from fairlead.shapes.worker import Accepted, ErrorBody, OneResult, TaskProgressBody
from fairlead.times import time_text

MOST_BYTES = 8 * 1024 * 1024  # of the items of one body; the gateway takes twice as much
MOST_DECLARED = 200 * 1024  # bytes of the entries of one declaration; the gateway takes 256 KiB
MOST_ITEMS = 1000

OF_THE_GATEWAY = "is found by the gateway: leave it out"
OF_THE_KEY = "is that of the key: leave it out, and use a key of this tenant"

T = TypeVar("T")


def task_body(task: NewTask) -> SubmitBody:
    """Raises what the store would, before anything is sent."""
    check(task)
    if task.job_id is not None:
        raise InvalidInput("job_id", OF_THE_GATEWAY)
    given = {"parameters": raw("parameters", task.parameters), "run_at": time_text(task.run_at)}
    return SubmitBody(**_fields(SubmitBody, task, given))


def job_body(job: NewJob) -> JobBody:
    """Its stages are left out: the gateway knows its pipeline."""
    return JobBody(**_fields(JobBody, job, {"input_data": raw("input_data", job.input_data)}))


def _fields(body: type[Body], new: NewTask | NewJob, given: Json) -> Json:
    """Those that are given, and the others as they are."""
    if new.tenant is not None:
        raise InvalidInput("tenant", OF_THE_KEY)
    if new.weight is not None:
        raise InvalidInput("weight", OF_THE_GATEWAY)
    given["priority"] = new.priority if new.priority_asked else None  # else the gateway finds it
    return {name: getattr(new, name) for name in body.__struct_fields__ if name not in given} | given


def raw(field: str, value: object) -> msgspec.Raw:
    return msgspec.Raw(to_json(field, value).encode())


def frame_body(frame: object) -> FrameBody:
    return FrameBody(frame=msgspec.Raw(to_json("frame", frame, MOST_CHUNK_BYTES).encode()))


def result_body(report: Completed | Failed) -> OneResult:
    if isinstance(report, Completed):
        return OneResult(
            task_id=report.task_id,
            status="completed",
            result=raw("result", report.result),
            fence=report.fence,
            truncated=report.truncated,
        )
    error = ErrorBody(
        code=readable(report.code)[:200] or "error",
        message=readable(report.message)[:4000],
        retriable=report.retriable,
        retry_after_seconds=report.retry_after_ms / 1000,
        crashed=report.crashed,
        traceback=report.traceback,
    )
    return OneResult(task_id=report.task_id, status="failed", error=error, fence=report.fence)


def progress_body(report: Progress) -> TaskProgressBody:
    report.packed()  # raises what the store would
    return TaskProgressBody(
        task_id=report.task_id,
        fence=report.fence,
        fraction=report.fraction,
        message=readable(report.message)[:4000],
        output=list(report.chunks),
        first=report.first,
    )


def limit_body(name: str, wanted: LimitSettings, shared: bool | None = None) -> LimitBody:
    limit_arguments(name, wanted)  # raises what the store would
    shared = wanted.shared or shared
    if isinstance(wanted, Slots):
        return LimitBody(limit=wanted.limit, shared=shared)
    return LimitBody(rate=rate_text(wanted.interval_us), burst=wanted.burst, shared=shared)


def declared_bodies(tables: Mapping[str, Mapping[str, Any]]) -> list[Json]:
    """What code declares, in as few bodies as the gateway accepts; what comes first is declared first."""
    entries = [(table, name, encode(form)) for table, forms in tables.items() for name, form in forms.items()]
    bodies: list[Json] = []

    def size(entry: tuple[str, str, bytes]) -> tuple[int, int]:
        return 1, len(entry[1]) + len(entry[2]) + len('"":,')

    for some in bounded_parts(entries, size, (MOST_ITEMS, MOST_DECLARED)):
        bodies.append({})
        for table, name, form in some:
            bodies[-1].setdefault(table, {})[name] = msgspec.Raw(form)
    return bodies or [{}]


def stages_body(stages: Stages) -> list[Any]:
    """As they are written: a step by its name, several beside each other as `parallel`."""
    return [stage[0] if len(stage) == 1 else {"parallel": list(stage)} for stage in stages]


def batch_of(items: Iterable[T], body: Callable[[T], Body]) -> Batch[bytes]:
    return Batch.of(items, lambda item: encode(body(item)))


def in_bodies(batch: Batch[bytes]) -> Iterator[list[msgspec.Raw]]:
    """The items of one body after the other."""
    for some in bounded_parts(batch.accepted, lambda item: (1, len(item)), (MOST_ITEMS, MOST_BYTES)):
        yield [msgspec.Raw(item) for item in some]


def state_or_error(row: Accepted) -> State | FairleadError:
    return none_or_error(row) or State(row.status or "")


def none_or_error(row: Accepted | BatchItem) -> FairleadError | None:
    return error_of(msgspec.to_builtins(row.error)) if row.error else None


def submitted_or_error(row: BatchItem) -> Submitted | FairleadError:
    return none_or_error(row) or row.to_value()
