"""The options of task types, tasks, crons and jobs, by name and type, and what is made of them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from fairlead.checks import nearest
from fairlead.errors import InvalidInput
from fairlead.model.job import NewJob
from fairlead.model.task import NewTask
from fairlead.settings import PriorityName
from fairlead.worker.handler import RunIn

LISTS = (list, set, frozenset)
#: The options of a submit, by the names of `NewTask`.
OPTIONS = frozenset(NewTask.__struct_fields__) - {"task_type", "parameters", "by_tenant", "weight"}


class TypeOptions(TypedDict, total=False):
    """The options of a task type, which a decorator accepts. None: the default."""

    limits: Mapping[str, int] | None
    max_concurrent: int | None
    timeout: float | None
    max_retries: int | None
    required_capabilities: Sequence[str]
    run_in: RunIn | None


class RepeatableOptions(TypedDict, total=False):
    """The options of a task that may be the same for many tasks. None: the default."""

    priority: PriorityName | None
    user_id: str | None
    tenant: str | None
    concurrency_group: str | None
    concurrency_limit: int | None
    duration: str | None
    timeout_seconds: float | None
    max_wait_seconds: float | None
    deadline_seconds: float | None
    delay_seconds: float | None
    size_hint: str | None
    trace_id: str | None


class Options(RepeatableOptions, total=False):
    """The options of one task, in addition to its parameters. None: the default."""

    required_capabilities: Sequence[str] | None
    limits: Mapping[str, int] | None
    max_retries: int | None
    run_at: datetime | None
    idempotency_key: str | None
    task_id: str | None


class CronOptions(TypeOptions, RepeatableOptions, total=False):
    """The options of a task type that a cron makes, and of the task that it submits at every tick."""

    parameters: Mapping[str, Any]


class JobOptions(TypedDict, total=False):
    """The options of one job, in addition to its input. None: the default."""

    priority: PriorityName | None
    user_id: str | None
    tenant: str | None
    max_wait_seconds: float | None
    idempotency_key: str | None
    trace_id: str | None
    job_id: str | None


def new_task(task_type: str, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> NewTask:
    given = _given(options, OPTIONS)
    if isinstance(capabilities := given.get("required_capabilities"), LISTS):
        given["required_capabilities"] = tuple(capabilities)
    if isinstance(run_at := given.get("run_at"), datetime):
        if run_at.tzinfo is None:
            raise InvalidInput("run_at", "has no time zone: use datetime(..., tzinfo=UTC)")
        given["run_at"] = round(run_at.timestamp() * 1000)
    return NewTask(task_type=task_type, parameters=parameters, **given)


def new_job(feature_name: str, input_data: Mapping[str, Any], options: Mapping[str, Any]) -> NewJob:
    given = _given(options, JobOptions.__annotations__)
    return NewJob(feature_name=feature_name, input_data=input_data, **given)


def check_known(options: Collection[str], known: Collection[str]) -> None:
    """Refuses options that do not exist, such as `timeout` at a submit, which has `timeout_seconds`."""
    if unknown := sorted(set(options).difference(known)):
        raise InvalidInput("options", f"there is no option {', '.join(unknown)}{instead(unknown[0], known)}")


def instead(name: str, known: Collection[str]) -> str:
    """What to use, if a known name is similar."""
    similar = nearest(name, known)
    return f": use {similar}" if similar else ""


def _given(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    check_known(options, known)
    given = {name: value for name, value in options.items() if value is not None}
    given.setdefault("priority_asked", "priority" in given)  # else a gateway may ask its priority service
    return given
