"""What can be set: one frozen value per section of the configuration, with its defaults."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from fairlead.checks import LEAST_WEIGHT, MOST_WEIGHT
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.settings.rates import parse_rate
from fairlead.settings.urls import engine_url_problem, url_problem

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]
SomeSeconds = Annotated[float, Meta(gt=0)]
Weight = Annotated[float, Meta(gt=0)]
PlanWeight = Annotated[float, Meta(ge=LEAST_WEIGHT, le=MOST_WEIGHT)]
PriorityName = Literal["high", "medium", "low"]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration. `problem` says what is wrong between its keys, if anything."""

    def problem(self) -> str | None:
        return None


class PriorityDefaults(Section, frozen=True):
    """What a task of this priority gets unless it says otherwise."""

    max_retries: Count
    timeout_seconds: SomeSeconds


class Priorities(Section, frozen=True):
    high: PriorityDefaults = PriorityDefaults(max_retries=5, timeout_seconds=300)
    medium: PriorityDefaults = PriorityDefaults(max_retries=3, timeout_seconds=600)
    low: PriorityDefaults = PriorityDefaults(max_retries=2, timeout_seconds=900)


class Promotion(Section, frozen=True):
    """When waiting tasks are promoted. After `budget` starts at native priority one promoted task may start
    first; 0 disables the budget.
    """

    low_to_medium_seconds: Seconds = 600
    medium_to_high_seconds: Seconds = 1200
    low_to_high_seconds: Seconds | None = None  # None: one step after the other
    budget: Count = 5

    @property
    def low_to_high(self) -> float:
        if self.low_to_high_seconds is None:
            return self.low_to_medium_seconds + self.medium_to_high_seconds
        return self.low_to_high_seconds

    def problem(self) -> str | None:
        if self.low_to_high < self.low_to_medium_seconds:
            return "low_to_high_seconds must not be less than low_to_medium_seconds"
        return None


class WorkerSettings(Section, frozen=True):
    """How many tasks a worker runs at once, how many slots are kept for `high`, and its heartbeat."""

    capacity: Positive = 5
    reserve: Count = 0
    heartbeat_seconds: SomeSeconds = 10
    missed_heartbeats: Positive = 3

    def problem(self) -> str | None:
        if self.reserve >= self.capacity:
            return f"reserve ({self.reserve}) must be less than capacity ({self.capacity})"
        return None


class LeaseSettings(Section, frozen=True):
    lease_seconds: SomeSeconds | None = None  # None: as long as a worker may be silent
    grace_seconds: Seconds = 1


class Slots(Section, frozen=True):
    """A limit as a number of units, held while tasks run; 0 pauses."""

    limit: Count
    shared: bool = False  # every tenant may name it


class Rate(Section, frozen=True):
    """A limit as a token bucket: `count` units per period, at most `burst` of them at once."""

    count: Positive
    period_seconds: SomeSeconds
    burst: Positive
    shared: bool = False  # every tenant may name it

    @classmethod
    def of(cls, text: str, burst: int | None = None, *, shared: bool = False) -> "Rate":
        """`60/min`, all of it at once unless `burst` says less; a ValueError says what a rate looks like."""
        count, period = parse_rate(text)
        return cls(count=count, period_seconds=period, burst=count if burst is None else burst, shared=shared)

    @property
    def interval_us(self) -> int:
        """Microseconds in which one unit grows back."""
        return max(1, int(self.period_seconds * 1_000_000) // self.count)


LimitSettings = Slots | Rate


class TaskSettings(Section, frozen=True):
    """What every task of a type gets, besides what it asks for itself."""

    limits: dict[str, Positive] = field(default_factory=dict)
    required_capabilities: list[str] = field(default_factory=list)
    timeout_seconds: SomeSeconds | None = None  # None: that of the priority
    max_retries: Count | None = None


class Fairness(Section, frozen=True):
    """Between whom shares are fair, and how large they are (1 unless a weight is given).

    `weights` are of users or tenants, `plans` of users on a plan, which the priority service names.
    """

    by: Literal["user_id", "tenant"] = "user_id"
    weights: dict[str, Weight] = field(default_factory=dict)
    plans: dict[str, PlanWeight] = field(default_factory=dict)


class Admission(Section, frozen=True):
    """How many tasks may wait, queued or delayed: in all, and of one user (or a tenant that names none)."""

    max_queued: Positive = 100_000
    max_queued_per_user: Positive = 1_000
    max_task_types: Positive = 1_000  # of one tenant, each with its set of capabilities, that wait at a time


class EngineSettings(Section, frozen=True):
    """Which server: a URL, or with none the embedded one on its data folder; namespaces are kept apart.

    For clients and workers the URL may be a gateway's (`http://...`), which may ask for a key. In the folder
    `state` this machine remembers what it has seen on servers, so that it notices when one has lost data.
    """

    url: str | None = None
    key: str | None = None
    data: str | None = None
    state: str | None = None
    namespace: str = "default"
    durability: Literal["always", "everysec"] = "always"

    @property
    def is_gateway(self) -> bool:
        return self.url is not None and self.url.startswith(("http://", "https://"))

    def problem(self) -> str | None:
        return None if self.url is None else engine_url_problem(self.url)


class HistorySettings(Section, frozen=True):
    url: str | None = None


class ServerSettings(Section, frozen=True):
    """Where the gateway listens, and the names it answers to besides that address."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8000
    hosts: list[str] = field(default_factory=list)
    read_seconds: SomeSeconds = 10  # in which the head of a request must have come, and then its body
    write_seconds: SomeSeconds = 10  # in which a reader that is behind must take some of what is sent
    idle_seconds: SomeSeconds = 60  # for which a connection may be kept open between two requests
    max_connections: Positive = 16_384  # of one process; at most three quarters of its open files
    live_per_key: Positive = 1_000  # connections for live updates that a key may have open, of one process
    submit_rate: Rate | None = None  # of keys without their own rate; None: unlimited
    failed_keys_per_minute: Count = 30  # requests without a valid key, from one address; 0: any number


class LogSettings(Section, frozen=True):
    """What the processes of Fairlead write to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Scheduling(Section, frozen=True):
    hold_after_seconds: Seconds = 30
    hold_seconds: SomeSeconds = 300  # a hold that brought no start ends then
    started_jobs_first: bool = True  # within a priority, a later step goes ahead of jobs that have not begun


class Outbox(Section, frozen=True):
    max_events: Positive = 100_000


class RetrySettings(Section, frozen=True):
    """Back-off between tries: it doubles from `base_seconds` up to `max_seconds`."""

    base_seconds: SomeSeconds = 1
    max_seconds: SomeSeconds = 300

    def problem(self) -> str | None:
        if self.base_seconds > self.max_seconds:
            return "base_seconds must not be more than max_seconds"
        return None


class Retention(Section, frozen=True):
    """How long, and at most how much, the store keeps of what has ended; the oldest is dropped first."""

    finished_seconds: SomeSeconds = 86_400
    max_finished: Positive = 100_000  # completed and cancelled tasks and jobs
    max_finished_bytes: Positive = 1024**3
    least_seconds: Seconds = 60  # before a full memory takes what has finished
    dead_seconds: SomeSeconds = 30 * 86_400
    max_dead: Positive = 100_000  # failed and dead-lettered tasks, and as many failed jobs
    idempotency_seconds: SomeSeconds = 86_400


class PriorityServiceSettings(Section, frozen=True):
    """The service that returns the priority of a user; without a URL such tasks are `medium`."""

    url: str | None = None  # with {user_id} in it; else /users/{user_id}/priority is appended
    timeout_seconds: SomeSeconds = 2
    cache_seconds: Seconds = 60
    fallback: PriorityName = "medium"
    trust_clients: bool = True  # the priority that a client asks for counts; else only that of the service

    def problem(self) -> str | None:
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            return "url must begin with http:// or https://"
        return None


class ServiceSettings(Section, frozen=True):
    """An HTTP endpoint that does a step of a pipeline: where it answers, and how much it can take."""

    url: str = ""
    limit: Positive = 1  # calls at once
    timeout_seconds: SomeSeconds = 120  # of one call
    max_attempts: Annotated[int, Meta(ge=1, le=1001)] = 3

    def problem(self) -> str | None:
        return url_problem(self.url)

    def as_task(self, limit: str) -> TaskSettings:
        """The settings of a call as a task."""
        return TaskSettings(
            limits={limit: 1},
            # a little longer than the call may take: so the call itself ends first, and says why
            timeout_seconds=self.timeout_seconds + 1,
            max_retries=self.max_attempts - 1,
        )


class Settings(Section, frozen=True):
    """Everything that can be set."""

    priorities: Priorities = Priorities()
    promotion: Promotion = Promotion()
    worker: WorkerSettings = WorkerSettings()
    lease: LeaseSettings = LeaseSettings()
    limits: dict[str, LimitSettings] = field(default_factory=dict)
    tasks: dict[str, TaskSettings] = field(default_factory=dict)
    fairness: Fairness = Fairness()
    scheduling: Scheduling = Scheduling()
    admission: Admission = Admission()
    retry: RetrySettings = RetrySettings()
    retention: Retention = Retention()
    engine: EngineSettings = EngineSettings()
    history: HistorySettings = HistorySettings()
    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()
    outbox: Outbox = Outbox()
    tiers: dict[str, Any] = field(default_factory=dict)
    services: dict[str, ServiceSettings] = field(default_factory=dict)
    pipelines: dict[str, Stages] = field(default_factory=dict)
    priority_service: PriorityServiceSettings = PriorityServiceSettings()

    @property
    def declared_tasks(self) -> dict[str, TaskSettings]:
        """Of the services too: the limit and the type of a service have the same name."""
        services = {
            SERVICE + name: service.as_task(SERVICE + name) for name, service in self.services.items()
        }
        return {**self.tasks, **services}

    @property
    def declared_limits(self) -> dict[str, LimitSettings]:
        services = {SERVICE + name: Slots(limit=service.limit) for name, service in self.services.items()}
        return {**self.limits, **services}

    @property
    def worker_ttl_ms(self) -> int:
        """How long a worker may be silent before it is given up."""
        return round(self.worker.heartbeat_seconds * self.worker.missed_heartbeats * 1000)

    @property
    def lease_ms(self) -> int:
        seconds = self.lease.lease_seconds
        return self.worker_ttl_ms if seconds is None else round(seconds * 1000)

    def problem(self) -> str | None:
        if self.lease_ms <= self.worker.heartbeat_seconds * 1000:
            return (
                "a lease (lease.lease_seconds, else worker.heartbeat_seconds x worker.missed_heartbeats) "
                "must outlast a heartbeat, which renews it"
            )
        for table in ("tasks", "limits"):
            for name in getattr(self, table):
                if name.startswith(SERVICE):
                    return f"{table}.{name}: say it in services.{name.removeprefix(SERVICE)}"
        for task_type, task in self.tasks.items():
            for name, units in task.limits.items():
                most = _most_units(self.limits.get(name))
                if most is not None and units > most:
                    return f"tasks.{task_type}.limits.{name}: {units} units are more than all of {most}"
        return None


def _most_units(limit: LimitSettings | None) -> int | None:
    # A limit the file does not define may be defined later, and one of 0 is paused, not too small.
    if isinstance(limit, Slots):
        return limit.limit or None
    return limit.burst if limit else None
