"""What requests may bring: strict, every unknown field is an error."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, field

PriorityName = Literal["high", "medium", "low"]
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:-]+$")]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
Units = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=315_360_000)]
SomeSeconds = Annotated[float, Meta(ge=0.001, le=315_360_000)]
Time = Annotated[str, Meta(max_length=40, description="RFC 3339", extra_json_schema={"format": "date-time"})]
Fence = Annotated[int, Meta(ge=1)]
Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class SubmitBody(Body, frozen=True):
    """A task as a client asks for it."""

    task_type: Name
    parameters: dict[str, Any] = {}
    priority: PriorityName | None = None
    user_id: Short | None = None
    required_capabilities: Annotated[list[Name], Meta(max_length=16)] = []
    limits: Annotated[dict[Name, Units], Meta(max_length=8)] = {}
    concurrency_group: Name | None = None
    concurrency_limit: Units | None = None
    duration: Short | None = None
    timeout_seconds: SomeSeconds | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    max_wait_seconds: SomeSeconds | None = None
    delay_seconds: Seconds | None = None
    run_at: Time | None = None
    idempotency_key: Short | None = None
    trace_id: Short | None = None
    task_id: Uuid | None = None  # sent again with the same one, it is one task


class ItsUser(Struct):
    """Of a task, whatever else it brings."""

    user_id: str | None = None


class BatchBody(Body, frozen=True):
    """Each task is checked on its own: one bad one does not spoil the others."""

    tasks: Annotated[list[Raw], Meta(max_length=1000)]  # SubmitBody, each read when its turn comes


class RegisterBody(Body, frozen=True):
    capabilities: Annotated[list[Name], Meta(max_length=100)] = []
    capacity: Annotated[int, Meta(ge=1, le=100_000)] | None = None  # None: as the settings say
    reserve: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    task_types: Annotated[list[Name], Meta(max_length=1000)] | None = None
    name: Short | None = None
    version: Short | None = None
    worker_id: Name | None = None  # whoever registers again keeps it


class PollBody(Body, frozen=True):
    available_capacity: Annotated[int, Meta(ge=0, le=100_000)]
    capabilities: Annotated[list[Name], Meta(max_length=100)] | None = None
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0
    request_id: Name | None = None  # the same again when the answer was lost: the same tasks
    idle: bool = False  # call me when there is more: who says so waits at /wait


class ErrorBody(Body, frozen=True):
    message: Annotated[str, Meta(max_length=100_000)] = ""
    retriable: bool = True
    code: Short = "error"
    retry_after_seconds: Seconds = 0
    crashed: bool = False  # what ran it died: counted as a crash
    traceback: Annotated[str, Meta(max_length=100_000)] = ""  # 4 KiB of it are kept


class OneResult(Body, frozen=True):
    task_id: str
    status: Literal["completed", "failed"]
    result: Any = None
    error: ErrorBody | None = None
    fence: Fence | None = None


EACH_ONE_RESULT = {"items": {"$ref": "#/components/schemas/OneResult"}}  # read when its turn comes


class ResultBody(Body, frozen=True):
    """One result, or many under `results`."""

    task_id: str | None = None
    status: Literal["completed", "failed"] | None = None
    result: Raw = field(default_factory=lambda: Raw(b"null"))
    error: ErrorBody | None = None
    fence: Fence | None = None
    results: Annotated[list[Raw], Meta(max_length=1000, extra_json_schema=EACH_ONE_RESULT)] | None = None
    poll: PollBody | None = None  # and then the next tasks


class ProgressBody(Body, frozen=True):
    fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: Annotated[str, Meta(max_length=4000)] = ""
    output: Annotated[list[Any], Meta(max_length=1000)] = []


class HeartbeatBody(Body, frozen=True):
    current_load: Annotated[int, Meta(ge=0)] = 0
    status: Literal["active", "draining"] = "active"
    progress: Annotated[dict[str, ProgressBody], Meta(max_length=1000)] = {}


class TaskProgressBody(ProgressBody, frozen=True, kw_only=True):
    task_id: str
    output: Annotated[list[Raw], Meta(max_length=1000)] = []  # each chunk is read when its turn comes
    fence: Fence | None = None
    first: Units | None = None  # the number of the first chunk in this run: repeated, it is kept once


class SayBody(Body, frozen=True):
    reports: Annotated[list[TaskProgressBody], Meta(min_length=1, max_length=1000)]


class ExtendBody(Body, frozen=True):
    task_id: str
    seconds: SomeSeconds
    fence: Fence | None = None


class StallBody(Body, frozen=True, kw_only=True):
    request_id: Name  # the same again when the answer was lost: the same answer
    begun: Annotated[list[Fence], Meta(max_length=200_000)] = []  # what it runs or has not reported yet


class WaitBody(Body, frozen=True):
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0


class ReleaseBody(Body, frozen=True):
    task_ids: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    fences: Annotated[dict[str, Fence], Meta(max_length=1000)] = {}  # by task: then only if they are these


class LimitBody(Body, frozen=True):
    """Slots (`limit`), or a rate such as `60/min`."""

    limit: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    burst: Units | None = None
    shared: bool | None = None  # every tenant may name it; null: as before


class TypeBody(Body, frozen=True):
    """What every task of a type gets, besides what it asks for itself."""

    limits: Annotated[dict[Name, Units], Meta(max_length=8)] = {}
    required_capabilities: Annotated[list[Name], Meta(max_length=16)] = []
    timeout_seconds: SomeSeconds | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None


class DeclareBody(Body, frozen=True):
    """What the code of a worker says of its types, limits and pipelines."""

    types: Annotated[dict[Name, TypeBody], Meta(max_length=1000)] = {}
    limits: Annotated[dict[Name, LimitBody], Meta(max_length=1000)] = {}
    pipelines: Annotated[dict[Name, list[Any]], Meta(max_length=1000)] = {}  # steps, as a file has them


class TickBody(Body, frozen=True):
    previous: Time
    tick: Time
    task: SubmitBody


class LeaseBody(Body, frozen=True):
    lease_seconds: Annotated[float, Meta(ge=0.001, le=86_400)]
    units: Units = 1
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0
    holder: Short | None = None
    lease_id: Name | None = None
    priority: PriorityName | None = None  # medium
    user_id: Short | None = None
    keep_place: bool = False


class RenewBody(Body, frozen=True):
    lease_seconds: Annotated[float, Meta(ge=0.001, le=86_400)] = 30
    fence: Fence | None = None


class ReplayBody(Body, frozen=True):
    """Which dead letters: all of them, or those of one type; at most `limit`."""

    task_type: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class TaskQuery(Body, frozen=True):
    status: (
        Literal["delayed", "queued", "executing", "completed", "failed", "cancelled", "dead_letter"] | None
    ) = None
    priority: PriorityName | None = None
    task_type: Name | None = None
    user_id: Short | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: Annotated[str, Meta(max_length=100)] = ""


class TicketQuery(Body, frozen=True):
    ticket: Annotated[str, Meta(max_length=100)] | None = None


class WatchQuery(TicketQuery, frozen=True):
    after: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class EventsQuery(Body, frozen=True):
    after: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class CancelMessage(Body, frozen=True):
    cancel: str


class PageQuery(Body, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(pattern="^[0-9]{0,9}$")] = ""


class LongPageQuery(Body, frozen=True):
    """Of lists that are mostly short: without a `limit` a page has all of them, up to 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=4000)] = ""


class TenantQuery(Body, frozen=True):
    tenant: Short | None = None  # whose limits are meant; for operators


class LimitsQuery(LongPageQuery, frozen=True):
    tenant: Short | None = None


class HolderQuery(TenantQuery, frozen=True):
    lease_id: Name | None = None


class ForceQuery(TenantQuery, frozen=True):
    force: bool = False
    fence: Fence | None = None


class SimpleQuery(Body, frozen=True):
    priority: Literal["low", "high"] = "low"


class NoQuery(Body, frozen=True):
    pass
