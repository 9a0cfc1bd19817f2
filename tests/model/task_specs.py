"""Tasks to ask for: of the store in its form, of the rules in theirs."""

from dataclasses import dataclass

from hypothesis import strategies as st

from fairlead.model.task import NewTask as StoredTask
from fairlead.rules.values import NewTask

LIMITS = ("one", "two", "gpu", "api")
CUSTOMERS = tuple(f"customer{number}" for number in range(9))  # each a limit of one slot
TYPES = ("render", "chat")
LEASES = {"chat": 50_000}  # longer than workers ask for
UNSERVED = "unserved"  # a type that only a worker that may come serves
CAPABILITIES = (frozenset[str](), frozenset({"gpu"}), frozenset({"gpu", "big"}))
WORDS = ("high", "medium", "low")
WEIGHTS = {"bob": 2.0, "eve": 0.3}

#: Limit sets on purpose both nested and overlapping, with units and a rate among them.
NEEDS: tuple[dict[str, int], ...] = (
    {},
    {"one": 1},
    {"two": 1},
    {"one": 1, "two": 1},
    {"gpu": 1},
    {"gpu": 3},
    {"gpu": 2, "two": 1},
    {"api": 1},
    {"api": 2, "one": 1},
    {"one": 1, "two": 1, "gpu": 1, "api": 1},
    {"gpu": 1, "api": 1},
    *({"gpu": 1, customer: 1} for customer in CUSTOMERS),
    {"one": 1, "two": 1, "customer0": 1},
)


def account(tenant: str, user: str) -> str:
    return f"{len(tenant)}:{tenant}:{user}" if tenant or user else ""


@dataclass(frozen=True)
class TaskSpec:
    """A task to ask for, of the store and of the rules."""

    kind: str
    priority: int
    fair: str  #: a user
    tenant: str
    needs: dict[str, int]
    capabilities: frozenset[str]
    delay: int | None
    max_wait: int | None
    timeout: int
    retries: int
    duration: str | None = None  #: a tier

    def as_task(self, now: int) -> tuple[StoredTask, NewTask]:
        submitted = StoredTask(
            task_type=self.kind,
            priority=WORDS[self.priority],
            user_id=self.fair or None,
            tenant=self.tenant or None,
            limits=self.needs,
            required_capabilities=tuple(self.capabilities),
            delay_seconds=self.delay and self.delay / 1000,
            max_wait_seconds=self.max_wait and self.max_wait / 1000,
            timeout_seconds=self.timeout / 1000,
            max_retries=self.retries,
            duration=self.duration,
        )
        new = NewTask(
            id=submitted.task_id,
            type=self.kind,
            base=self.priority,
            fair=account(self.tenant, self.fair),
            weight=WEIGHTS.get(self.fair, 1.0),
            limits=self.needs,
            capabilities=self.capabilities,
            timeout=self.timeout,
            lease=LEASES.get(self.kind, 0),
            max_retries=self.retries,
            run_at=self.delay and now + self.delay,
            max_wait=self.max_wait,
            duration=self.duration,
        )
        return submitted, new


task_specs = st.builds(
    TaskSpec,
    kind=st.sampled_from([*TYPES, *TYPES, UNSERVED]),
    priority=st.integers(0, 2),
    fair=st.sampled_from(["", "ann", "bob", "eve"]),
    tenant=st.sampled_from(["", "", "acme"]),
    needs=st.sampled_from(NEEDS),
    capabilities=st.sampled_from(CAPABILITIES),
    delay=st.sampled_from([None, None, None, 500, 5_000]),
    max_wait=st.sampled_from([None, None, None, 2_000, 40_000]),
    timeout=st.sampled_from([5_000, 60_000, 600_000]),
    retries=st.integers(0, 2),
)
