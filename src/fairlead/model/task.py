"""A task: as a client asks for it, checked field by field, and as the store knows it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import uuid_utils

from fairlead.checks import (
    TABLE,
    UUID,
    check_capabilities,
    check_name,
    check_seconds,
    check_short,
    check_time,
    check_traceparent,
    check_units,
    check_weight,
    check_whole,
)
from fairlead.errors import InvalidInput
from fairlead.model.estimate import Estimate
from fairlead.model.priority import PRIORITIES, Priority, priority_named
from fairlead.model.states import State
from fairlead.model.tenants import plain_needs
from fairlead.settings.tiers import INTERACTIVE, TIER

MOST_PER_CALL = 1000
MOST_LIMITS = 8
#: Optional texts of a task that are stored and returned as the client gave them.
TEXTS = ("user_id", "tenant", "trace_id", "traceparent", "job_id", "duration", "size_hint")
STATES = {state.value: state for state in State}
HALTED = "HALTED"  # the code of an interactive task that had to make room
Content = Callable[[str], Any]  # how parameters and results are read


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as a client asks for it. None: the default of its type or priority."""

    task_type: str
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)
    priority: str = "medium"
    priority_asked: bool = True  # False: found for the client, and maybe another one when it asks again
    user_id: str | None = None
    tenant: str | None = None
    by_tenant: bool = False  # its tenant submits it: it may name the limits of the tenant, and shared ones
    weight: float | None = None  # of its user's share; found for the client, which cannot choose it
    required_capabilities: tuple[str, ...] = ()
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    concurrency_group: str | None = None
    concurrency_limit: int | None = None
    duration: str | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    max_wait_seconds: float | None = None
    deadline_seconds: float | None = None  # as max_wait_seconds, and refused if that is unlikely to be enough
    delay_seconds: float | None = None
    run_at: int | None = None  # ms since 1970
    idempotency_key: str | None = None
    size_hint: str | None = None  # of tasks of its type, those with the same one run about as long
    trace_id: str | None = None
    traceparent: str | None = None  # of W3C: the span to which its own belong
    job_id: str | None = None
    task_id: str = msgspec.field(default_factory=lambda: str(uuid_utils.uuid7()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    code: str
    message: str
    retriable: bool
    traceback: str | None = None  # of the handler; lists of tasks leave it out


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """How far its run is, as its handler reports."""

    fraction: float | None = None  # of 1
    message: str = ""


class TierChange(msgspec.Struct, frozen=True):
    """Since when, and why, a run may take as long as this tier allows."""

    tier: str
    at: int
    reason: str


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
    loss_count: int = 0  # workers that were lost with it, hardly by its doing
    fence: int = 0
    reported_fence: int | None = None  # of the latest run whose worker reported its end
    queued_at: int | None = None  # from when its wait counts
    run_at: int | None = None
    started_at: int | None = None
    deadline: int | None = None
    lease_until: int | None = None
    completed_at: int | None = None
    assigned_worker_id: str | None = None
    result: Any = None
    error: TaskError | None = None
    progress: TaskProgress | None = None
    tier: str | None = None  # that its run was given, or was shortened to
    tiers: tuple[TierChange, ...] = ()  # how that came
    bounded: bool = False  # the deadline is that of the tier, and final
    truncated: bool = False  # its handler returned after the deadline: the result may be a part
    interactive: bool = False
    size_hint: str | None = None
    trace_id: str | None = None
    traceparent: str | None = None  # of W3C: the span to which its own belong
    job_id: str | None = None
    step: int | None = None  # which step of its job it is
    idempotency_key: str | None = None
    estimate_given: Estimate | None = None  # when it was queued
    waited_ms: int | None = None  # until its first start
    seq: int = 1  # of its last event

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000

    @property
    def waited_seconds(self) -> float | None:
        return None if self.waited_ms is None else self.waited_ms / 1000

    @property
    def attempt(self) -> int:
        return self.retry_count + self.crash_count + self.loss_count + 1

    @classmethod
    def from_record(
        cls, task_id: str, record: Mapping[str, Any], content: Content = msgspec.json.decode
    ) -> "Task":
        """A number may come as text, as it is stored. A field that is false is absent.

        `content` reads parameters and result, which may be large: `msgspec.Raw` leaves them as they are, for
        callers that only pass them on.
        """
        known: dict[str, Any] = {"parameters": {}}
        for name, value in (*record.get("facts", {}).items(), *record.items()):
            if name in IN_RECORDS and value is not False:
                field, read = IN_RECORDS[name]
                known[field] = (content if name in CONTENT else read)(value)
        if (traceback := record.get("traceback")) and "error" in known:
            known["error"] = replace(known["error"], traceback=traceback)
        known.setdefault("effective_priority", known["priority"])
        if record["state"] != "executing" and not record.get("stopping"):  # the record keeps its last lease
            known["lease_until"] = None
        if "tiers" not in known and {"tier", "started_at"} <= known.keys():
            known["tiers"] = (TierChange(known["tier"], known["started_at"], "started"),)
        return cls(task_id=task_id, **known)


def write_key(tenant: str, key: str) -> str:
    """An idempotency key as the store knows it; with a length, because a tenant's name may hold a colon."""
    return f"{len(tenant)}:{tenant}:{key}"


def read_key(text: str) -> str:
    length, _, rest = text.partition(":")
    return rest[int(length) + 1 :]


def write_limits(limits: Mapping[str, int]) -> str:
    """The text by which the store knows a set of needs: `a=1,b=24`, by name."""
    return ",".join(f"{name}={units}" for name, units in sorted(limits.items()))


def read_limits(text: str) -> dict[str, int]:
    """By the names that the submitter of the task knows."""
    needs = {name: int(units) for name, _, units in (need.partition("=") for need in text.split(",") if need)}
    return plain_needs(needs) if "/" in text else needs


def check(new: NewTask) -> None:
    """Refuses what can be seen to be wrong without the store; the error names the field."""
    check_name("task_type", new.task_type)
    if not isinstance(new.task_id, str) or not UUID.fullmatch(new.task_id):
        raise InvalidInput("task_id", "is not a lower-case UUID")
    priority_named(new.priority)
    if not isinstance(new.priority_asked, bool):
        raise InvalidInput("priority_asked", "is neither True nor False")
    if not isinstance(new.by_tenant, bool):
        raise InvalidInput("by_tenant", "is neither True nor False")
    if not isinstance(new.parameters, TABLE):
        raise InvalidInput("parameters", "is not an object")
    for name, check_given in WHERE_GIVEN.items():
        if (value := getattr(new, name)) is not None:
            check_given(name, value)
    if new.required_capabilities != ():
        check_capabilities(new.required_capabilities)
    if new.limits != {} or new.concurrency_group is not None or new.concurrency_limit is not None:
        _check_all_limits(new)
    _check_together(new)


def _check_together(new: NewTask) -> None:
    if new.run_at is not None and new.delay_seconds is not None:
        raise InvalidInput("run_at", "give run_at or delay_seconds, not both")
    if new.deadline_seconds is not None and new.max_wait_seconds is not None:
        raise InvalidInput("deadline_seconds", "give deadline_seconds or max_wait_seconds, not both")
    if new.duration != INTERACTIVE:
        return
    for name in NOT_INTERACTIVE:
        if getattr(new, name) is not None:
            raise InvalidInput(name, "an interactive task starts at once or never, and only once: omit it")
    if new.job_id is not None:
        raise InvalidInput("duration", "a step of a job cannot be interactive: submit the task by itself")


def check_limits(limits: object, group: str | None = None) -> None:
    """Names and units of the limits that a task or a type needs; its concurrency group is one more."""
    if not isinstance(limits, Mapping):
        raise InvalidInput("limits", "is not a table of names and units")
    names = {*limits, *([group] if group else [])}
    if len(names) > MOST_LIMITS:
        raise InvalidInput("limits", f"names {len(names)} limits, at most {MOST_LIMITS} are accepted")
    for name, units in limits.items():
        check_name("limits", name)
        check_units(f"limits.{name}", units)
        _check_not_tier(f"limits.{name}", name)


def _check_not_tier(field: str, name: str) -> None:
    if name.startswith(TIER):
        tier = name.removeprefix(TIER)
        raise InvalidInput(field, f"is the limit of a tier: give the duration {tier!r} instead")


def _check_all_limits(new: NewTask) -> None:
    check_limits(
        new.limits, new.concurrency_group or (new.task_type if new.concurrency_limit is not None else None)
    )
    if new.concurrency_limit is not None:
        check_units("concurrency_limit", new.concurrency_limit)
        if new.concurrency_group is None:
            check_name("concurrency_group", new.task_type)
            _check_not_tier("concurrency_limit", new.task_type)
    if new.concurrency_group is not None:
        check_name("concurrency_group", new.concurrency_group)
        _check_not_tier("concurrency_group", new.concurrency_group)


#: What an interactive task cannot have: it is never queued, and never retried.
NOT_INTERACTIVE = ("delay_seconds", "run_at", "max_wait_seconds", "deadline_seconds", "max_retries")

#: The fields that most tasks leave out.
WHERE_GIVEN: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys((*TEXTS, "idempotency_key"), check_short),
    "traceparent": check_traceparent,
    **dict.fromkeys(("timeout_seconds", "max_wait_seconds", "deadline_seconds"), check_seconds),
    "delay_seconds": lambda name, value: check_seconds(name, value, zero=True),
    "max_retries": lambda name, value: check_whole(name, value, 1000),
    "run_at": check_time,
    "weight": check_weight,
}


#: JSON of the users.
CONTENT = frozenset({"parameters", "result"})

#: The numbers of a stored record that a task calls by the same name.
NUMBERS = ("max_retries", "concurrency_limit", "fence", "run_at", "deadline", "lease_until", "step")

#: The fields of a stored record: what a task calls them, and how they are read.
IN_RECORDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "type": ("task_type", str),
    "state": ("status", STATES.__getitem__),
    "priority": ("priority", lambda number: PRIORITIES[str(number)]),
    "place": ("effective_priority", lambda place: PRIORITIES[place[0]]),
    "parameters": ("parameters", msgspec.json.decode),
    "created": ("created_at", int),
    "timeout": ("timeout_ms", int),
    "capabilities": ("required_capabilities", lambda names: tuple(names.split(","))),
    "limits": ("limits", read_limits),
    **{name: (name, str) for name in (*TEXTS, "concurrency_group")},
    **{name: (name, int) for name in NUMBERS},
    **{name: (name, float) for name in ("max_wait_seconds", "delay_seconds")},
    "arrival": ("queued_at", int),
    "reported": ("reported_fence", int),
    "retries": ("retry_count", int),
    "crashes": ("crash_count", int),
    "losses": ("loss_count", int),
    "started": ("started_at", int),
    "finished": ("completed_at", int),
    "worker": ("assigned_worker_id", str),
    "result": ("result", msgspec.json.decode),
    "error": ("error", lambda text: TaskError(**msgspec.json.decode(text))),
    "progress": ("progress", lambda text: TaskProgress(**msgspec.json.decode(text))),
    "tier": ("tier", str),
    "tiers": ("tiers", msgspec.json.Decoder(tuple[TierChange, ...]).decode),
    **{name: (name, lambda value: bool(int(value))) for name in ("bounded", "truncated", "interactive")},
    "key": ("idempotency_key", read_key),
    "waited": ("waited_ms", int),
    "estimate": ("estimate_given", Estimate.of_row),
    "told": ("seq", int),
}


@dataclass(frozen=True, slots=True)
class Submitted:
    """`queue_position`: 1 + all that were queued in its priority or a better one; None: it is not queued."""

    task_id: str
    status: State
    repeated: bool = False  # the same id or idempotency key was accepted before
    queue_position: int | None = None
    blocked_by: tuple[str, ...] = ()  # limits that had no room for it when it was queued
    #: of a task that was accepted before, has ended, and is remembered by its idempotency key alone
    priority: Priority | None = None
    effective_priority: Priority | None = None
    warnings: tuple[str, ...] = ()  #: for example, that no worker serves its type yet
    estimate: Estimate | None = None  # of its wait; None: nothing is known yet


@dataclass(frozen=True, slots=True)
class TaskPage:
    """`next_cursor` leads to the next page; empty: this was the last. An empty page need not be the last."""

    tasks: list[Task]
    next_cursor: str = ""
    warnings: tuple[str, ...] = ()  # that the history does not answer, so that something is missing
