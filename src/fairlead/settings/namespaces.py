"""What each namespace has its own of: the policy, the limits, the types, and all that follows from them."""

from msgspec import field

from fairlead.settings.base import Problem, Section
from fairlead.settings.limits import LimitSettings, Rate, Slots, TaskSettings
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.settings.processes import EstimateSettings
from fairlead.settings.scheduling import (
    Admission,
    Fairness,
    LeaseSettings,
    MostWait,
    Outbox,
    Priorities,
    Promotion,
    Retention,
    RetrySettings,
    Scheduling,
    WorkerSettings,
)
from fairlead.settings.services import PriorityServiceSettings, ServiceSettings
from fairlead.settings.tiers import TIER, TierEntry, tiers_problem


class NamespaceSettings(Section, frozen=True):
    """What can be set for each namespace."""

    priorities: Priorities = Priorities()
    promotion: Promotion = Promotion()
    worker: WorkerSettings = WorkerSettings()
    lease: LeaseSettings = LeaseSettings()
    #: Limits by name: a number of slots or units, or a rate. `shared = true` allows tasks of all tenants to
    #: name the limit. Example: openai = { rate = "60/min", burst = 10 }
    limits: dict[str, LimitSettings] = field(default_factory=dict)
    tasks: dict[str, TaskSettings] = field(default_factory=dict)
    fairness: Fairness = Fairness()
    scheduling: Scheduling = Scheduling()
    admission: Admission = Admission()
    retry: RetrySettings = RetrySettings()
    retention: Retention = Retention()
    estimates: EstimateSettings = EstimateSettings()
    outbox: Outbox = Outbox()
    #: Which running task of a tier is shortened when a longer tier needs its room: `youngest` or `random`.
    #: Example: victim = "youngest"
    tiers: dict[str, TierEntry] = field(default_factory=dict)
    services: dict[str, ServiceSettings] = field(default_factory=dict)
    #: Pipelines by name: the steps of a job, one after the other; steps in `{ parallel = [...] }` run at the
    #: same time. A step is the name of a service or a task type. Example: story = ["outline", "write"]
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

    @property
    def hold_ms(self) -> int:
        """For how long after a loss of data was noticed handlers from before may run."""
        return self.lease_ms + round(self.lease.grace_seconds * 1000)

    def problem(self) -> Problem | None:
        if self.lease_ms <= self.worker.heartbeat_seconds * 1000:
            return Problem(
                "a lease (lease.lease_seconds, else worker.heartbeat_seconds x worker.missed_heartbeats) "
                "must outlast a heartbeat, which renews it",
                (
                    ("lease", "lease_seconds"),
                    ("worker", "heartbeat_seconds"),
                    ("worker", "missed_heartbeats"),
                ),
            )
        for table in ("tasks", "limits"):
            for name in getattr(self, table):
                if name.startswith(SERVICE):
                    words = f"{table}.{name}: say it in services.{name.removeprefix(SERVICE)}"
                    return Problem(words, ((table, name),))
        for name in self.limits:
            if name.startswith(TIER):
                words = f"limits.{name}: is the limit of a tier: set it in tiers.{name.removeprefix(TIER)}"
                return Problem(words, (("limits", name),))
        return (
            tiers_problem(self.tiers)
            or self._bound_without_estimates()
            or self._too_short_lease()
            or self._too_many_units()
        )

    def _bound_without_estimates(self) -> Problem | None:
        if self.estimates.enabled or self.admission.max_wait_seconds == MostWait():
            return None
        words = "admission.max_wait_seconds needs estimates: enable them, or leave it out"
        return Problem(words, (("admission", "max_wait_seconds"), ("estimates", "enabled")))

    def _too_short_lease(self) -> Problem | None:
        """The worker renews all its leases with one heartbeat, so none may be shorter than the others."""
        leases = [(("tasks", name), task.lease_seconds) for name, task in self.tasks.items()]
        leases += [(("services", name), service.lease_seconds) for name, service in self.services.items()]
        for (table, name), seconds in leases:
            if seconds is not None and seconds * 1000 < self.lease_ms:
                least = f"{self.lease_ms / 1000:g} s, which is the lease of all tasks"
                words = f"{table}.{name}.lease_seconds must not be less than {least}"
                return Problem(words, ((table, name, "lease_seconds"), ("lease", "lease_seconds")))
        return None

    def _too_many_units(self) -> Problem | None:
        for task_type, task in self.tasks.items():
            for name, units in task.limits.items():
                most = _most_units(self.limits.get(name))
                if most is not None and units > most:
                    words = f"tasks.{task_type}.limits.{name}: {units} units are more than all of {most}"
                    if isinstance(self.limits[name], Rate):
                        words += f", the burst of the rate: give it burst = {units}"
                    return Problem(words, (("tasks", task_type, "limits", name), ("limits", name)))
        return None


def _most_units(limit: LimitSettings | None) -> int | None:
    # A limit the file does not define may be defined later, and one of 0 is paused, not too small.
    if isinstance(limit, Slots):
        return limit.limit or None
    return limit.burst if limit else None
