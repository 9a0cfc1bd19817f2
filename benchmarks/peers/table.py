"""The queues that are compared: what is installed, at which version, and how the worker is started."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

MANY = 100  # jobs at a time, for those that run them in an event loop
UVLOOP, HIREDIS = "uvloop==0.23.0", "hiredis==3.5.0"


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    packages: tuple[str, ...]  # none: it runs in Fairlead's own environment
    worker: tuple[str, ...]  # {bin}, {adapter}, {file} and {capacity} are filled in
    settings: str
    capacity: int = MANY
    runs_on: Literal["python", "node"] = "python"
    priorities: bool = False
    leases: bool = True  # false: killing its worker is not tried

    @property
    def is_python_peer(self) -> bool:
        return self.runs_on == "python" and bool(self.packages)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


PEERS = (
    Peer(
        "fairlead",
        (),
        ("{bin}/fairlead", "worker", "{adapter}:fl", "--capacity", "{capacity}"),
        "no history beside it; every guarantee on",
        priorities=True,
    ),
    Peer(
        "bound",
        (),
        ("{bin}/python", "-m", "{adapter}"),
        "no product: a bare asyncio client that acknowledges a batch and claims the next in one script",
        priorities=True,
        leases=False,
    ),
    Peer(
        "bullmq",
        ("bullmq@6.7.0", "ioredis@6.0.0"),
        ("node", "{file}", "worker"),
        "ioredis, finished jobs removed, stalled ones looked for ten times in a lease",
        runs_on="node",
        priorities=True,
    ),
    Peer(
        "dramatiq",
        ("dramatiq[redis]==2.2.1", "redis==8.1.0", HIREDIS),
        ("{bin}/dramatiq", "{adapter}", "--processes", "1", "--threads", "{capacity}"),
        "worker threads; a queue for each priority; maintenance with one command in 100, not 1,000",
        capacity=32,
        priorities=True,
    ),
    Peer(
        "taskiq",
        ("taskiq==0.13.0", "taskiq-redis==1.2.4", "redis==8.1.0", HIREDIS, UVLOOP),
        (
            *("{bin}/taskiq", "worker", "{adapter}:broker", "--workers", "1", "--no-parse"),
            *("--max-async-tasks", "{capacity}", "--log-level", "WARNING"),
        ),
        "stream broker, uvloop, no results, arguments not parsed",
    ),
    Peer(
        "huey",
        ("huey==3.5.4", "redis==8.1.0", HIREDIS),
        ("{bin}/huey_consumer", "{adapter}.huey", "--workers", "{capacity}", "--quiet"),
        "priority storage, worker threads, no results",
        capacity=4,
        priorities=True,
    ),
    Peer(
        "saq",
        ("saq[redis]==0.26.4", "redis==7.4.1", "typing-extensions==4.16.0", HIREDIS, UVLOOP),
        ("{bin}/saq", "{adapter}.settings"),
        "uvloop, no results, stuck jobs looked for ten times in a lease",
    ),
    Peer(
        "arq",
        ("arq==0.28.0", "redis==5.3.1", HIREDIS, UVLOOP),
        ("{bin}/arq", "{adapter}.WorkerSettings"),
        "uvloop, polls every 10 ms, no results",
    ),
    Peer(
        "celery",
        ("celery[redis]==5.7.0", "redis==8.1.0", HIREDIS),
        (
            *("{bin}/celery", "-A", "{adapter}", "worker", "--pool", "solo", "--loglevel", "WARNING"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        "solo pool, late acknowledgement, prefetches one, no results, no gossip, mingle or heartbeat",
        capacity=1,
        priorities=True,
    ),
    Peer(
        "rq",
        ("rq==2.12.0", "redis==8.1.0", HIREDIS),
        ("{bin}/python", "-m", "{adapter}"),
        "the forking worker, modules imported before, no results; a queue for each priority",
        capacity=1,
        priorities=True,
    ),
    Peer(
        "docket",
        ("pydocket==0.27.0", "redis==8.1.0", HIREDIS, UVLOOP),
        ("{bin}/python", "-m", "{adapter}"),
        "uvloop, looks for work every 25 ms when it is full (by default every 100)",
    ),
    Peer(
        "streaq",
        ("streaq==7.2.0", "coredis==6.9.0", UVLOOP),
        ("{bin}/streaq", "run", "{adapter}:worker"),
        "uvloop, no results, no log line per task",
        priorities=True,
    ),
)


def choose(names: str) -> list[Peer]:
    """The peers of a list like `fairlead,celery`, all of them for an empty one."""
    known = {peer.name: peer for peer in PEERS}
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    for name in wanted:
        if name not in known:
            raise ValueError(f"--only: nothing is called {name!r}; choose from {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)]
