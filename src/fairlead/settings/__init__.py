"""What can be set: one frozen value per section of the configuration, with its defaults."""

from msgspec import field
from msgspec.structs import replace

from fairlead.settings.base import PriorityName, Problem
from fairlead.settings.blobs import BlobSettings
from fairlead.settings.limits import LimitSettings, Rate, Slots, TaskSettings
from fairlead.settings.namespaces import NamespaceSettings
from fairlead.settings.processes import (
    EngineSettings,
    EstimateSettings,
    HistorySettings,
    LogSettings,
    ServerSettings,
    TracingSettings,
)
from fairlead.settings.scheduling import (
    Admission,
    Fairness,
    LeaseSettings,
    Outbox,
    Priorities,
    PriorityDefaults,
    Promotion,
    Retention,
    RetrySettings,
    Scheduling,
    WorkerSettings,
)
from fairlead.settings.services import PriorityServiceSettings, ServiceSettings

__all__ = [
    "Admission",
    "BlobSettings",
    "EngineSettings",
    "EstimateSettings",
    "Fairness",
    "HistorySettings",
    "LeaseSettings",
    "LimitSettings",
    "LogSettings",
    "NamespaceSettings",
    "Outbox",
    "Priorities",
    "PriorityDefaults",
    "PriorityName",
    "PriorityServiceSettings",
    "Promotion",
    "Rate",
    "Retention",
    "RetrySettings",
    "Scheduling",
    "ServerSettings",
    "ServiceSettings",
    "Settings",
    "Slots",
    "TaskSettings",
    "TracingSettings",
    "WorkerSettings",
]


class Settings(NamespaceSettings, frozen=True):
    """Everything that can be set."""

    engine: EngineSettings = EngineSettings()
    history: HistorySettings = HistorySettings()
    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    blobs: BlobSettings = BlobSettings()
    #: More [namespaces](namespaces.md) that the gateway serves, by name. Each has sections of its own, except
    #: `engine`, `history`, `server`, `log`, `tracing` and `blobs`; what it leaves out has its default.
    #: Example: team-b = { limits = { gpu = 2 } }
    namespaces: dict[str, NamespaceSettings] = field(default_factory=dict)

    @property
    def served(self) -> tuple[str, ...]:
        """The namespaces of a gateway with these settings, its own first."""
        return tuple(dict.fromkeys((self.engine.namespace, *self.namespaces)))

    @property
    def is_ledger(self) -> bool:
        """Whether a submit is answered only when the history has it."""
        return self.engine.durability == "ledger"

    def of_namespace(self, name: str) -> "Settings":
        """Those of a process that works in this namespace."""
        own = self.namespaces.get(name)
        changes = {} if own is None else {part: getattr(own, part) for part in own.__struct_fields__}
        return replace(self, engine=replace(self.engine, namespace=name), **changes)

    def problem(self) -> Problem | None:
        return super().problem() or self._ledger_without_history()

    def _ledger_without_history(self) -> Problem | None:
        engine, history = self.engine, self.history
        if not self.is_ledger or engine.is_gateway:
            return None
        if history.enabled and (history.url or not engine.url):
            return None
        words = 'engine.durability = "ledger" needs a history: set history.url (or DATABASE_URL)'
        return Problem(words, (("engine", "durability"), ("history", "url")))
