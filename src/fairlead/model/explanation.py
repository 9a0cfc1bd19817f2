"""Why a task waits, or why it was chosen when it started."""

from dataclasses import dataclass, field, replace

from fairlead.model.estimate import Estimate
from fairlead.model.priority import Priority
from fairlead.model.sentences import sentence_of
from fairlead.model.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Units of a limit that a run holds, or a lease without one; of another tenant without ids and names."""

    units: int
    task_id: str | None = None
    lease_id: str | None = None
    worker: str | None = None  # that runs the task, or the holder that the acquire named
    since: int | None = None  # ms
    expires_at: int | None = None  # when its lease ends, unless it is renewed
    expected_end: int | None = None  # of a run, by how long such runs take
    ends_at: int | None = None  # at the latest, unless it is extended
    tenant: str | None = None
    foreign: bool = False  # of another tenant than the one that asks


@dataclass(frozen=True, slots=True)
class Blocker:
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: int | None = None  # ms; when it is expected to have room
    tenant: str | None = None  # whose own limit it is; None: the operator's
    is_rate: bool = False
    next_free_seconds: float | None = None  # until `free_at`
    by_deadline: bool = False  # `free_at` is when its holders must have ended: more is not known
    holders: tuple[Holder, ...] = ()  # some of them, those that end first


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """How a task was chosen for its last run."""

    worker_id: str
    at: int  # ms
    waited_seconds: float | None  # until its first start
    effective_priority: Priority
    promoted: bool
    tag: int  # its fair share: of tasks with equal priorities the least goes first
    better_waiting: dict[str, int] = field(default_factory=dict)  # how many had a better priority, by that
    skipped_for: tuple[str, ...] = ()  # limits without room, for which tasks that went before it were skipped


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task waits. `sentence` says it in words."""

    task_id: str
    state: State
    effective_priority: Priority | None = None
    promoted: bool = False
    position: int | None = None  # among those of the same place
    ahead: dict[str, int] = field(default_factory=dict)  # by better priority
    promotes_at: int | None = None
    blocked_by: tuple[Blocker, ...] = ()
    held_for: str | None = None  # the task whose hold keeps the units back
    type_paused: bool = False
    no_capable_worker: bool = False
    task_type: str | None = None  # of a queued task
    type_unserved: bool = False  # no live worker serves it
    missing_capabilities: tuple[str, ...] = ()  # that none of the live workers of its type has
    similar_type: str | None = None  # a known type that may have been meant
    reserve: bool = False  # the only free slots are reserved for base priority high
    run_at: int | None = None
    estimate: Estimate | None = None  # of the wait that is left
    at: int = 0  # ms; when this was so
    chosen_because: Chosen | None = None  # of a task that has started

    @property
    def queue_position(self) -> int | None:
        """With those of better priorities; None when it is not queued."""
        return None if self.position is None else self.position + sum(self.ahead.values())

    @property
    def sentence(self) -> str:
        return sentence_of(self)

    def seen_by(self, tenant: str) -> "Explanation":
        """Without what is another tenant's."""
        blocked_by = tuple(
            replace(one, holders=tuple(_seen_by(tenant, holder) for holder in one.holders))
            for one in self.blocked_by
        )
        chosen = self.chosen_because and replace(self.chosen_because, skipped_for=())
        return replace(self, held_for=None, blocked_by=blocked_by, chosen_because=chosen)


def _seen_by(tenant: str, holder: Holder) -> Holder:
    if holder.tenant == tenant:
        return holder
    return replace(holder, foreign=True, task_id=None, lease_id=None, worker=None, tenant=None)
