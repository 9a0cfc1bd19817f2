"""What decides who goes next, how long work may wait, and how long the store keeps it."""

from typing import Annotated, Literal

from msgspec import Meta, field

from fairlead.checks import LEAST_WEIGHT, MOST_WEIGHT
from fairlead.settings.base import Count, Positive, Problem, Retries, Seconds, Section, SomeSeconds, wrong

Weight = Annotated[float, Meta(gt=0)]
PlanWeight = Annotated[float, Meta(ge=LEAST_WEIGHT, le=MOST_WEIGHT)]


class PriorityDefaults(Section, frozen=True):
    """What a task of this priority gets if neither the task nor its type says otherwise."""

    #: How often a task is retried.
    max_retries: Retries
    #: How long a run may take.
    timeout_seconds: SomeSeconds


class Priorities(Section, frozen=True):
    high: PriorityDefaults = PriorityDefaults(max_retries=8, timeout_seconds=300)
    medium: PriorityDefaults = PriorityDefaults(max_retries=8, timeout_seconds=600)
    low: PriorityDefaults = PriorityDefaults(max_retries=8, timeout_seconds=900)


class Promotion(Section, frozen=True):
    """When waiting tasks are promoted. All times count from the submit; 0 means never."""

    #: When a task of low priority becomes medium.
    low_to_medium_seconds: Seconds = 600
    #: When a task of medium priority becomes high.
    medium_to_high_seconds: Seconds = 1200
    #: When a task of low priority becomes high; by default the sum of the other two, and with
    #: `PROMOTE_MEDIUM_TO_HIGH_AFTER` that number. Example: 1800
    low_to_high_seconds: Seconds | None = None
    #: After this many starts at native priority one promoted task may start first; 0 disables the budget.
    budget: Count = 5

    @property
    def low_to_high(self) -> float:
        if self.low_to_high_seconds is not None:
            return self.low_to_high_seconds
        if not self.medium_to_high_seconds:  # nothing becomes high by age, by whichever way it became medium
            return 0
        return self.low_to_medium_seconds + self.medium_to_high_seconds

    def problem(self) -> Problem | None:
        if 0 < self.low_to_high < self.low_to_medium_seconds:
            return wrong(
                "low_to_high_seconds must not be less than low_to_medium_seconds",
                "low_to_high_seconds",
                "low_to_medium_seconds",
            )
        return None


class WorkerSettings(Section, frozen=True):
    """What a worker takes on, and its heartbeat."""

    #: How many tasks a worker runs at once.
    capacity: Positive = 5
    #: How many of these slots run only tasks that were submitted with high priority; if it is the capacity,
    #: the worker runs no others.
    reserve: Count = 0
    #: How often a worker reports that it is alive.
    heartbeat_seconds: SomeSeconds = 10
    #: A worker that has missed this many heartbeats is given up, and its tasks run elsewhere.
    missed_heartbeats: Positive = 3

    def problem(self) -> Problem | None:
        if self.reserve > self.capacity:
            words = f"reserve ({self.reserve}) must not be more than capacity ({self.capacity})"
            return wrong(words, "reserve", "capacity")
        return None


class LeaseSettings(Section, frozen=True):
    """How long a worker may hold a task without a sign of life."""

    #: How long a lease lasts unless it is renewed; by default as long as a worker may be silent. Example: 30
    lease_seconds: SomeSeconds | None = None
    #: How long after its end a lease is waited for, because clocks and networks are late.
    grace_seconds: Seconds = 1


class Fairness(Section, frozen=True):
    """Between whom shares are fair, and how large they are: 1 unless a weight is given."""

    #: Whose shares are compared.
    by: Literal["user_id", "tenant"] = "user_id"
    #: Weights of users or tenants by name. Example: { ann = 3 }
    weights: dict[str, Weight] = field(default_factory=dict)
    #: Weights of users by the plan that the priority service returns. Example: { free = 1, pro = 3 }
    plans: dict[str, PlanWeight] = field(default_factory=dict)


class Scheduling(Section, frozen=True):
    """Details of the order in which tasks start."""

    #: After this wait, units are held for a task that needs several limits.
    hold_after_seconds: Seconds = 30
    #: How long units are held at most if no start comes of it.
    hold_seconds: SomeSeconds = 300
    #: Within a priority, later steps of a job go ahead of jobs of the same user that have not begun.
    started_jobs_first: bool = True


class MostWait(Section, frozen=True):
    """How long tasks of each priority may wait, by p50 of their estimate; 0: as long as it takes.

    A task that would wait longer is refused when it is submitted.
    """

    #: Of high priority.
    high: Seconds = 0
    #: Of medium priority.
    medium: Seconds = 0
    #: Of low priority.
    low: Seconds = 0


class Admission(Section, frozen=True):
    """How many tasks may wait, queued or delayed, and how long; what exceeds that is refused."""

    #: Of all users.
    max_queued: Positive = 100_000
    #: Of one user, or of a tenant that names no user.
    max_queued_per_user: Positive = 1_000
    #: Kinds of tasks (type and capabilities) of one tenant that may wait at a time.
    max_task_types: Positive = 1_000
    max_wait_seconds: MostWait = MostWait()


class RetrySettings(Section, frozen=True):
    """The pause before a retry doubles each time, from `base_seconds` up to `max_seconds`; half is random.

    By default eight retries take at least a minute, so that tasks survive an outage of that length.
    """

    #: The first pause.
    base_seconds: SomeSeconds = 1
    #: The longest pause.
    max_seconds: SomeSeconds = 30

    def problem(self) -> Problem | None:
        if self.base_seconds > self.max_seconds:
            return wrong("base_seconds must not be more than max_seconds", "base_seconds", "max_seconds")
        return None


class Retention(Section, frozen=True):
    """How long, and at most how much, the store keeps of what has ended; the oldest is dropped first."""

    #: How long completed and cancelled tasks and jobs are kept.
    finished_seconds: SomeSeconds = 86_400
    #: How long they stay in the store once the [history](history.md) has them, too.
    live_seconds: SomeSeconds = 3_600
    #: How many completed and cancelled tasks and jobs are kept.
    max_finished: Positive = 100_000
    #: How many bytes completed and cancelled tasks and jobs may take.
    max_finished_bytes: Positive = 1024**3
    #: How long they are kept even when memory is full.
    least_seconds: Seconds = 60
    #: How long failed and dead-lettered tasks, and failed jobs, are kept.
    dead_seconds: SomeSeconds = 30 * 86_400
    #: How many failed and dead-lettered tasks are kept, and as many failed jobs.
    max_dead: Positive = 100_000
    #: How long an idempotency key is remembered.
    idempotency_seconds: SomeSeconds = 86_400


class Outbox(Section, frozen=True):
    """The stream of events in the store."""

    #: How many events are kept for the history while its database is away.
    max_events: Positive = 100_000
