"""What a task is: what a client may ask for, checked field by field, and what the store knows of it."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import uuid_utils

from fairlead.errors import InvalidInput, UnknownTask
from fairlead.priority import Priority
from fairlead.states import State

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MOST_BYTES = 256 * 1024  # of parameters or of a result, as JSON
MOST_DEPTH = 32
MOST_LIMITS = 8
MOST_CAPABILITIES = 16
MOST_UNITS = 1_000_000_000
MOST_SECONDS = 10 * 365 * 86400
STATES = {state.value: state for state in State}
PRIORITIES = {str(int(priority)): priority for priority in Priority}
NAMED_PRIORITIES = {priority.word: priority for priority in Priority}
LATEST = 253_402_300_799_999  # ms: the end of the year 9999


def priority_named(name: object) -> Priority:
    if not isinstance(name, str) or name not in NAMED_PRIORITIES:
        raise InvalidInput("priority", f"{name!r} is not one of high, medium, low")
    return NAMED_PRIORITIES[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task as a client asks for it. None: the default of its type or priority."""

    task_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    priority: str = "medium"
    priority_asked: bool = True  # False: found for the client, and maybe another one when it asks again
    user_id: str | None = None
    tenant: str | None = None
    required_capabilities: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    concurrency_group: str | None = None
    concurrency_limit: int | None = None
    duration: str | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    max_wait_seconds: float | None = None
    delay_seconds: float | None = None
    run_at: int | None = None  # ms since 1970
    idempotency_key: str | None = None
    trace_id: str | None = None
    job_id: str | None = None
    task_id: str = field(default_factory=lambda: str(uuid_utils.uuid7()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    code: str
    message: str
    retriable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """How far its run is, as its handler tells."""

    fraction: float | None = None  # of 1
    message: str = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as the store knows it. Times are ms of the store's clock."""

    task_id: str
    task_type: str
    status: State
    priority: Priority
    effective_priority: Priority
    parameters: dict[str, Any]
    created_at: int
    timeout_ms: int
    max_retries: int
    required_capabilities: tuple[str, ...] = ()
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    concurrency_group: str | None = None
    concurrency_limit: int | None = None
    duration: str | None = None
    max_wait_seconds: float | None = None
    delay_seconds: float | None = None
    user_id: str | None = None
    tenant: str | None = None
    retry_count: int = 0
    crash_count: int = 0
    fence: int = 0
    run_at: int | None = None
    started_at: int | None = None
    deadline: int | None = None
    lease_until: int | None = None
    completed_at: int | None = None
    assigned_worker_id: str | None = None
    result: Any = None
    error: TaskError | None = None
    progress: TaskProgress | None = None
    trace_id: str | None = None
    job_id: str | None = None
    step: int | None = None  # which step of its job it is
    idempotency_key: str | None = None
    seq: int = 1  # of the last event that was told of it

    @property
    def attempt(self) -> int:
        return self.retry_count + self.crash_count + 1

    @classmethod
    def from_record(cls, task_id: str, record: Mapping[str, Any]) -> "Task":
        """A number may come as text: so it is stored."""

        def number(name: str) -> int | None:
            return int(record[name]) if name in record else None

        def seconds(name: str) -> float | None:
            return float(record[name]) if name in record else None

        priority = PRIORITIES[str(record["priority"])]
        error, progress = record.get("error"), record.get("progress")
        leased = record["state"] == "executing" or "stopping" in record  # the record keeps its last lease
        return cls(
            task_id=task_id,
            task_type=record["type"],
            status=STATES[record["state"]],
            priority=priority,
            effective_priority=PRIORITIES[record["place"][0]] if "place" in record else priority,
            parameters=msgspec.json.decode(record.get("parameters", "{}")),
            created_at=int(record["created"]),
            timeout_ms=int(record["timeout"]),
            max_retries=int(record["max_retries"]),
            required_capabilities=tuple(record["capabilities"].split(","))
            if "capabilities" in record
            else (),
            limits=read_limits(record["limits"]) if "limits" in record else {},
            concurrency_group=record.get("concurrency_group"),
            concurrency_limit=number("concurrency_limit"),
            duration=record.get("duration"),
            max_wait_seconds=seconds("max_wait_seconds"),
            delay_seconds=seconds("delay_seconds"),
            user_id=record.get("user_id"),
            tenant=record.get("tenant"),
            retry_count=number("retries") or 0,
            crash_count=number("crashes") or 0,
            fence=number("fence") or 0,
            run_at=number("run_at"),
            started_at=number("started"),
            deadline=number("deadline"),
            lease_until=number("lease_until") if leased else None,
            completed_at=number("finished"),
            assigned_worker_id=record.get("worker"),
            result=msgspec.json.decode(record["result"]) if "result" in record else None,
            error=TaskError(**msgspec.json.decode(error)) if error else None,
            progress=TaskProgress(**msgspec.json.decode(progress)) if progress else None,
            trace_id=record.get("trace_id"),
            job_id=record.get("job_id"),
            step=number("step"),
            idempotency_key=read_key(record["key"]) if "key" in record else None,
            seq=number("told") or 1,
        )


def write_key(tenant: str, key: str) -> str:
    """An idempotency key as the store knows it; with a length, for a tenant's name may hold a colon."""
    return f"{len(tenant)}:{tenant}:{key}"


def read_key(text: str) -> str:
    length, _, rest = text.partition(":")
    return rest[int(length) + 1 :]


def write_limits(limits: Mapping[str, int]) -> str:
    """The text by which the store knows a set of needs: `a=1,b=24`, by name."""
    return ",".join(f"{name}={units}" for name, units in sorted(limits.items()))


def read_limits(text: str) -> dict[str, int]:
    return {name: int(units) for name, _, units in (need.partition("=") for need in text.split(",") if need)}


def to_json(field_name: str, value: object, most: int = MOST_BYTES) -> str:
    """JSON as it goes into the store: at most so many bytes and 32 deep, no NaN, no lone surrogate."""
    _check_plain(field_name, value, MOST_DEPTH)
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError) as problem:  # a subclass it does not know, a number of too many digits
        raise InvalidInput(field_name, f"is not JSON: {problem}") from None
    if len(encoded) > most:
        raise InvalidInput(
            field_name, f"is {len(encoded)} bytes of JSON, at most {most} are accepted", "too_large"
        )
    return encoded.decode()


def _check_plain(field_name: str, value: object, depth: int) -> None:
    if isinstance(value, str):
        check_text(field_name, value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(field_name, f"{value} is not JSON: use null or a finite number")
    elif value is not None and not isinstance(value, int):
        _check_inside(field_name, value, depth)


def _check_inside(field_name: str, value: object, depth: int) -> None:
    if depth == 0 and isinstance(value, Mapping | list | tuple):
        raise InvalidInput(field_name, f"is nested more than {MOST_DEPTH} deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidInput(field_name, f"the key {key!r} is not a string")
            check_text(field_name, key)
            _check_plain(f"{field_name}.{key}", inner, depth - 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            _check_plain(f"{field_name}[{i}]", inner, depth - 1)
    else:
        raise InvalidInput(field_name, f"{type(value).__name__} is not JSON")


def check_text(field_name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field_name, "holds a lone surrogate: send valid Unicode") from None


def check(new: NewTask) -> None:
    """Refuses what can be seen to be wrong without the store; the error names the field."""
    check_name("task_type", new.task_type)
    if not isinstance(new.task_id, str) or not UUID.fullmatch(new.task_id):
        raise InvalidInput("task_id", "is not a lower-case UUID")
    priority_named(new.priority)
    if not isinstance(new.priority_asked, bool):
        raise InvalidInput("priority_asked", "is neither True nor False")
    if not isinstance(new.parameters, Mapping):
        raise InvalidInput("parameters", "is not an object")
    for name in ("user_id", "tenant", "idempotency_key", "trace_id", "job_id", "duration"):
        check_short(name, getattr(new, name))
    check_capabilities(new.required_capabilities)
    _check_limits(new)
    for name in ("timeout_seconds", "max_wait_seconds", "delay_seconds"):
        check_seconds(name, getattr(new, name), zero=name == "delay_seconds")
    if new.max_retries is not None and not (_is_whole(new.max_retries) and 0 <= new.max_retries <= 1000):
        raise InvalidInput("max_retries", "is not a whole number from 0 to 1000")
    if new.run_at is not None and not (_is_whole(new.run_at) and 0 <= new.run_at <= LATEST):
        raise InvalidInput("run_at", "is not a time")
    if new.run_at is not None and new.delay_seconds is not None:
        raise InvalidInput("run_at", "give run_at or delay_seconds, not both")


def check_name(field_name: str, value: object) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidInput(field_name, "use 1 to 200 of A-Z a-z 0-9 _ . : -")


def check_task_id(task_id: str) -> str:
    """What cannot be an id is the id of no task."""
    if not UUID.fullmatch(task_id):
        raise UnknownTask()
    return task_id


def check_units(field_name: str, units: object) -> None:
    if not _is_whole(units) or not 1 <= units <= MOST_UNITS:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a whole number from 1 to {MOST_UNITS}")


def check_whole(field_name: str, value: object, most: int) -> None:
    if not _is_whole(value) or not 0 <= value <= most:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a whole number from 0 to {most}")


def check_fraction(field_name: str, value: object) -> None:
    if value is None:
        return
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not 0 <= value <= 1:  # type: ignore[operator]
        raise InvalidInput(field_name, "is not a number from 0 to 1")


def check_seconds(field_name: str, value: object, *, zero: bool = False) -> None:
    if value is None:
        return
    wrong = isinstance(value, bool) or not isinstance(value, int | float)
    if wrong or not (0 if zero else 0.001) <= value <= MOST_SECONDS:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a number of seconds up to {MOST_SECONDS}")


def check_ms(field_name: str, value: object) -> None:
    if not _is_whole(value) or not 1 <= value <= MOST_SECONDS * 1000:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a whole number of ms from 1 to {MOST_SECONDS * 1000}")


def check_capabilities(capabilities: Collection[str]) -> None:
    if isinstance(capabilities, str) or not isinstance(capabilities, Collection):
        raise InvalidInput("required_capabilities", "is not a list of names")
    if len(capabilities) > MOST_CAPABILITIES:
        raise InvalidInput(
            "required_capabilities", f"names {len(capabilities)}, at most {MOST_CAPABILITIES} are accepted"
        )
    for capability in capabilities:
        check_name("required_capabilities", capability)


def _check_limits(new: NewTask) -> None:
    if not isinstance(new.limits, Mapping):
        raise InvalidInput("limits", "is not a table of names and units")
    group = new.concurrency_group or (new.task_type if new.concurrency_limit is not None else None)
    names = {*new.limits, *([group] if group else [])}
    if len(names) > MOST_LIMITS:
        raise InvalidInput("limits", f"names {len(names)} limits, at most {MOST_LIMITS} are accepted")
    for name, units in new.limits.items():
        check_name("limits", name)
        check_units(f"limits.{name}", units)
    if new.concurrency_limit is not None:
        check_units("concurrency_limit", new.concurrency_limit)
        if new.concurrency_group is None:
            check_name("concurrency_group", new.task_type)
    if new.concurrency_group is not None:
        check_name("concurrency_group", new.concurrency_group)


def check_short(field_name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():
        raise InvalidInput(field_name, "is not 1 to 200 printable characters")
    check_text(field_name, value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
