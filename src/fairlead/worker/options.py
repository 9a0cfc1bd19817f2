"""What a worker process is to do, as its supervisor sends it, and how its end is read."""

from dataclasses import dataclass, field, replace

from fairlead.checks import check_seconds, check_whole
from fairlead.client.target import Target

GRACE_SECONDS = 30.0
MOST_CAPACITY = 100_000
STOP_SECONDS = 5.0  # between asking a handler to stop and giving it up
# Exit codes of a worker process: no store; a handler that nothing stops; it was drained. The last is not 0,
# because a handler can end its process with that.
NOT_REACHABLE, STUCK, DRAINED = 3, 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How much one worker process takes on. None: as the settings say."""

    capacity: int | None = None
    reserve: int | None = None
    capabilities: tuple[str, ...] = ()
    name: str = ""
    grace: float = GRACE_SECONDS

    def __post_init__(self) -> None:
        if self.capacity is not None:
            check_whole("capacity", self.capacity, MOST_CAPACITY, least=1)
        if self.reserve is not None:
            check_whole("reserve", self.reserve, MOST_CAPACITY)
        check_seconds("grace", self.grace, zero=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the processes of a supervisor are to do: run this app, against another store if one is given."""

    app: str  # module:attribute; empty: call the services of the settings
    target: Target = field(default_factory=Target)
    namespaces: tuple[str, ...] = ()  # to claim from, in turn; none: that of the target
    options: WorkerOptions = field(default_factory=WorkerOptions)

    @property
    def count(self) -> int:
        """How many namespaces each process works for."""
        return len(self.namespaces) or 1

    def targets(self, other: Target) -> list[Target]:
        """One for each namespace; `other` is the app's own, where nothing is said."""
        target = self.target.or_else(other)
        return [replace(target, namespace=name) for name in self.namespaces] or [target]
