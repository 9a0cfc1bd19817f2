"""What is expected at each limit: who holds it and until when, and who starts next."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fairlead.model.priority import Priority

MOST_LIMITS, MOST_RUNS = 50, 40  # of an answer, and of each of its limits
LONGEST_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRun:
    """A run, a lease without a task, or a task that waits; of another tenant without ids and names."""

    is_running: bool
    start_p50: int  # ms; of what runs, when it started
    start_p90: int
    end_p50: int
    end_p90: int
    units: int = 1
    priority: Priority | None = None  # None: a lease without a task
    task_id: str | None = None
    lease_id: str | None = None
    job_id: str | None = None
    user_id: str | None = None
    task_type: str | None = None
    tenant: str | None = None
    foreign: bool = False  # of another tenant than the one that asks

    @property
    def state(self) -> str:
        return "running" if self.is_running else "expected"

    def seen_by(self, tenant: str) -> "ForecastRun":
        if self.tenant == tenant:
            return self
        anonymous = replace(self, task_id=None, lease_id=None, job_id=None, user_id=None)
        return replace(anonymous, task_type=None, tenant=None, foreign=True)


@dataclass(frozen=True, slots=True)
class Track:
    """A slot of a limit, and what holds it one after another."""

    slot: int
    runs: tuple[ForecastRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitForecast:
    """Of a limit with more than 32 slots, and of a rate, a track is a line of runs and not one unit."""

    name: str
    kind: str  # slots, rate, or workers: all slots of the workers together
    limit: int
    active: int
    waiting: int
    paused: bool = False
    tracks: tuple[Track, ...] = ()
    more: int = 0  # that wait, and are on no track
    last_start_p50: int | None = None  # of those that wait now; None: nobody knows, or nothing waits
    tenant: str | None = None  # whose own limit it is; None: the operator's

    def until(self, end: int) -> "LimitForecast":
        """Without those that are expected to start later."""
        tracks = tuple(
            Track(track.slot, tuple(run for run in track.runs if run.is_running or run.start_p50 <= end))
            for track in self.tracks
        )
        left_out = _waiting_on(self.tracks) - _waiting_on(tracks)
        return replace(self, tracks=tracks, more=self.more + left_out)

    def seen_by(self, tenant: str) -> "LimitForecast":
        tracks = (
            Track(track.slot, tuple(run.seen_by(tenant) for run in track.runs)) for track in self.tracks
        )
        return replace(self, tracks=tuple(tracks))


def _waiting_on(tracks: Sequence[Track]) -> int:
    """A task that needs several units is on several tracks."""
    return len({run.task_id for track in tracks for run in track.runs if not run.is_running})


@dataclass(frozen=True, slots=True)
class Pressure:
    """Who waits for a limit and who holds it, when the forecast was made. Priorities are by their words."""

    at: int  # ms
    waiting: dict[str, int]  # tasks
    held: dict[str, int]  # units; `lease`: of leases without a task
    last_start_p50: int | None  # ms, of those that wait; None: nobody knows, or nothing waits


@dataclass(frozen=True, slots=True)
class TypeLoad:
    """How many tasks of a type wait and run."""

    waiting: dict[str, int] = field(default_factory=dict)  # by effective priority
    running: int | None = 0  # None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the forecast shows to people; limits are by their names in the store."""

    limits: dict[str, LimitForecast]  # the longest waits first
    pressures: dict[str, Pressure]  # of all that are waited for or held, in this order
    types: dict[str, TypeLoad]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedStep:
    """A task, or a step of a job: when it started and ended, or is expected to."""

    index: int
    name: str
    task_id: str
    task_type: str | None
    status: str
    stage: int = 0
    limits: tuple[str, ...] = ()
    queued_at: int | None = None
    start_p50: int | None = None  # ms
    start_p90: int | None = None
    end_p50: int | None = None
    end_p90: int | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """One task or job through all its limits."""

    sentence: str
    steps: tuple[FollowedStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    at: int | None  # ms; when it was made; None: there is none now
    limits: tuple[LimitForecast, ...] = ()
    workers: LimitForecast | None = None
    follow: Followed | None = None
