"""What is set for each process: which store it uses, where it listens, what it logs."""

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from fairlead.settings.base import Count, Positive, Problem, Section, SomeSeconds, wrong
from fairlead.settings.limits import Rate
from fairlead.settings.urls import engine_url_problem, history_url_problem

MOST_NAMESPACE = 64  # characters
NAMESPACE = re.compile(rf"[A-Za-z0-9_.-]{{1,{MOST_NAMESPACE}}}")
DEFAULT_NAMESPACE = "default"
A_NAMESPACE = f"use 1 to {MOST_NAMESPACE} of A-Z a-z 0-9 _ . -"


class EngineSettings(Section, frozen=True):
    """Which server holds the data: a URL, or with none the embedded server on its data folder.

    For clients and workers the URL may be a gateway's (`http://...`), which may ask for a key.
    """

    #: The server ([forms](engines.md#urls), Sentinel and Cluster among them); by default the embedded one.
    #: Example: "redis://127.0.0.1:6379/0"
    url: str | None = None
    #: API key of clients and workers for a gateway. Example: "flk_..."
    key: str | None = None
    #: Folder of the embedded server; by default one in the home folder. Example: "/var/lib/fairlead"
    data: str | None = None
    #: Folder in which this machine remembers what it has seen on a server, so that it notices when the server
    #: has lost data; by default one in the home folder. Example: "/var/lib/fairlead-state"
    state: str | None = None
    #: Name that keeps gateways on one server apart.
    namespace: str = DEFAULT_NAMESPACE
    #: When the embedded server writes to disk: before each reply, or once a second. With `"ledger"`, on any
    #: server, a submit is answered when [the history has it too](recovery.md#the-ledger).
    durability: Literal["always", "everysec", "ledger"] = "always"

    #: How many replicas of your server must have a change before it is answered
    #: ([why](engines.md#what-a-fail-over-may-lose)); all processes of a namespace need the same.
    replicas: Annotated[int, Meta(ge=0, le=100)] = 0

    @property
    def is_gateway(self) -> bool:
        return self.url is not None and self.url.startswith(("http://", "https://"))

    def problem(self) -> Problem | None:
        if not NAMESPACE.fullmatch(self.namespace):
            return wrong(f"namespace: {A_NAMESPACE}", "namespace")
        if self.replicas and self.url is None:
            return wrong("replicas: the embedded server has none: set url too", "replicas")
        return wrong(None if self.url is None else engine_url_problem(self.url), "url")


class HistorySettings(Section, frozen=True):
    """The [history](history.md): all that has happened, in SQLite or PostgreSQL."""

    #: The database. By default `history.sqlite3` in the data folder of the embedded server; with a server of
    #: your own there is no history without a URL. Example: "postgresql://fairlead@db/history"
    url: str | None = None
    #: Whether a server records it.
    enabled: bool = True
    #: Whether a server that notices a [loss of data](recovery.md) restores it by itself.
    auto_restore: bool = False
    #: How many days what has ended is kept.
    keep_days: Positive = 30
    #: How many bytes the database may take; what exceeds that is forgotten, the oldest first.
    max_bytes: Positive = 10 * 1024**3

    def problem(self) -> Problem | None:
        return wrong(None if self.url is None else history_url_problem(self.url), "url")


class EstimateSettings(Section, frozen=True):
    """How long tasks will [wait](estimates.md). All servers of a namespace need the same."""

    #: Whether forecasts are made, by a process beside the server. Without them no answer has an estimate, and
    #: no task is refused because it would wait too long.
    enabled: bool = True


class ServerSettings(Section, frozen=True):
    """Where the gateway listens, and how much it accepts."""

    #: Address to listen on.
    host: str = "127.0.0.1"
    #: Port to listen on; 0: any free one.
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8000
    #: Names that the gateway answers to besides its address. Example: ["jobs.example.com"]
    hosts: list[str] = field(default_factory=list)
    #: How long the head of a request may take to arrive, and then its body.
    read_seconds: SomeSeconds = 10
    #: How long a client that reads too slowly may take nothing of an answer.
    write_seconds: SomeSeconds = 10
    #: How long a connection is kept open between two requests.
    idle_seconds: SomeSeconds = 60
    #: Connections of one server process; at most three quarters of its open files.
    max_connections: Positive = 16_384
    #: Connections for live updates that a key may have open at one server process.
    live_per_key: Positive = 1_000
    #: How fast a key without its own rate may submit; by default without limit. Example: "50/s"
    submit_rate: Rate | None = None
    #: Requests without a valid key that an address may make; 0: any number.
    failed_keys_per_minute: Count = 30


class TracingSettings(Section, frozen=True):
    """[Traces](monitoring.md#traces) of tasks; the standard variables `OTEL_*` say where they are sent."""

    #: Whether the process makes spans, which needs `pip install 'fairlead[otel]'`. Servers and workers each
    #: need it.
    enabled: bool = False


class LogSettings(Section, frozen=True):
    """What the processes of Fairlead write to stderr."""

    #: The lowest level that is written.
    level: Literal["debug", "info", "warning", "error"] = "info"
    #: `text` for people, `json` for programs.
    format: Literal["text", "json"] = "text"
    #: Whether [every change](monitoring.md#logs) of a task is logged, by the process whose call made it. All
    #: processes of a namespace follow the setting of its servers.
    transitions: bool = False
    #: Whether servers log each request.
    access: bool = False
