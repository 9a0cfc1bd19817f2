"""Whether a server is fit for work, by what it says of itself; the embedded one also by its log and files."""

import contextlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from redis.exceptions import RedisError

from fairlead.clock import monotonic
from fairlead.errors import EngineFailed, FairleadError, UnsuitableServer
from fairlead.log.events import EventLog
from fairlead.store.address import parse_info
from fairlead.store.connection import Connection, text
from fairlead.store.engine.folder import EngineFolder
from fairlead.store.server_errors import error_code

OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)

EVICTS, REPLICA, DISK = "store_evicts", "store_is_replica", "store_cannot_save"
LACKS_REPLICAS = "store_lacks_replicas"
FAILED, TRUNCATED = "engine_failed", "engine_data_truncated"

CANNOT_SAVE = (
    "The store could not write {what} to its disk, and what it accepts may be lost: free disk space on its "
    "machine; its log says what failed."
)
SENTENCES = {
    REPLICA: "The store is a replica and cannot be written: set engine.url to the primary, or promote this "
    "server with `REPLICAOF NO ONE`.",
    DISK: "The store refuses changes because it could not save its data: free disk space on its machine; its "
    "log says what failed.",
}
#: The error codes with which a server in such a state answers an act.
REASONS = {"READONLY": REPLICA, "MISCONF": DISK}
CUT_OFF = (
    "The append-only file of the embedded server ended in the middle of an entry, and its end was cut off "
    "({since}). Run `fairlead doctor`, restore a backup if work is missing, then run "
    "`fairlead doctor --acknowledge`."
)
SETTLED_SECONDS = 10.0  # a server that has run this long can write: the caretaker writes every second
#: In the log of Redis and of Valkey. A server that syncs before it answers ends when it cannot write.
STARTED = re.compile(r"Server initialized")
CANNOT_WRITE = re.compile(r"(?:Error|Short write while) writing to the AOF file|No space left on device")
CANNOT_GO_ON = re.compile(r"Can't recover from AOF write error|No space left on device")
CUT = re.compile(r"Truncating the AOF|AOF .*loaded anyway because aof-load-truncated is enabled")

log = EventLog("fairlead.store")


async def check(connection: Connection) -> None:
    """Raises UnsuitableServer for one that forgets under pressure, is too old, or is a replica."""
    info = await _info(connection)
    check_server(info, await _maxmemory_policy(connection) or info.get("maxmemory_policy", ""))


async def look(connection: Connection) -> dict[str, str]:
    """Reason -> what is wrong and what to do, with a server that was fit when it was opened."""
    return problems_of(await _info(connection), connection.replicas)


async def warn_if_not_durable(connection: Connection) -> None:
    """For servers, and for workers that have joined. A store that does not answer is noticed elsewhere."""
    with contextlib.suppress(FairleadError):
        if (await _info(connection)).get("aof_enabled") == "0":
            log.warning(
                "server_not_durable",
                store=connection.address,
                problem="appendonly is off: tasks that were accepted are lost when the server ends",
                next_step="set `appendonly yes` and `appendfsync always` in the server's configuration",
            )


async def _info(connection: Connection) -> dict[str, str]:
    # on the connection that acts use: another may lead elsewhere
    return parse_info(await connection.call("INFO"))


async def _maxmemory_policy(connection: Connection) -> str:
    policy = await connection.attempt("CONFIG", "GET", "maxmemory-policy")
    # Managed services often forbid CONFIG; INFO says the same.
    return "" if isinstance(policy, RedisError) else text(policy.get(b"maxmemory-policy", b""))


def check_server(info: Mapping[str, str], maxmemory_policy: str) -> None:
    """Judges a server by its INFO and its eviction policy."""
    name, version, oldest = _version(info)
    if _numbers(version) < oldest:
        raise UnsuitableServer(
            f"this server is {name} {version}: Fairlead needs Redis 7.0 or Valkey 7.2, or newer; upgrade it, "
            "or give no URL and let Fairlead start its own"
        )
    if info.get("role") in ("slave", "replica"):
        primary = f"{info.get('master_host', 'its primary')}:{info.get('master_port', '?')}"
        raise UnsuitableServer(
            f"this server is a replica of {primary}: connect to the primary, which can be written"
        )
    if maxmemory_policy != "noeviction":
        raise UnsuitableServer(
            f"maxmemory-policy is {maxmemory_policy or 'not known'}: under memory pressure this server would "
            "throw tasks away; run `CONFIG SET maxmemory-policy noeviction` and set it in the server's "
            "configuration"
        )


def _version(info: Mapping[str, str]) -> tuple[str, str, tuple[int, int]]:
    # Valkey calls itself Redis 7.2.4 for old clients' sake, and gives its own version too.
    if "valkey_version" in info:
        return "Valkey", info["valkey_version"], OLDEST_VALKEY
    return "Redis", info.get("redis_version", "of unknown version"), OLDEST_REDIS


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else (0,)


def problems_of(info: Mapping[str, str], replicas: int = 0) -> dict[str, str]:
    """What INFO lacks is not known to be wrong: it was checked when the server was opened."""
    found: dict[str, str] = {}
    if (policy := info.get("maxmemory_policy", "noeviction")) != "noeviction":
        found[EVICTS] = (
            f"The store's maxmemory-policy is {policy}: it may throw tasks away, so no new work is accepted. "
            "Run `CONFIG SET maxmemory-policy noeviction` and set it in the server's configuration."
        )
    if info.get("role", "master") != "master":
        found[REPLICA] = SENTENCES[REPLICA]
    elif replicas > (attached := int(info.get("connected_slaves", replicas))):
        found[LACKS_REPLICAS] = (
            f"The store has {attached} of the {replicas} replicas that engine.replicas asks for, and no "
            "change is confirmed: start the missing replicas, or lower engine.replicas."
        )
    if info.get("aof_enabled") == "1" and info.get("aof_last_write_status", "ok") != "ok":
        found[DISK] = CANNOT_SAVE.format(what="its append-only file")
    elif info.get("aof_enabled") == "0" and info.get("rdb_last_bgsave_status", "ok") != "ok":
        found[DISK] = CANNOT_SAVE.format(what="a snapshot")
    return found


def problem_behind(refusal: FairleadError) -> dict[str, str]:
    """The same, by how the server refused an act."""
    cause = refusal.__cause__
    reason = REASONS.get(error_code(cause)) if isinstance(cause, RedisError) else None
    return {reason: SENTENCES[reason]} if reason else {}


class EngineHealth:
    def __init__(self, folder: EngineFolder) -> None:
        self.folder = folder
        self._reason = self._failure = ""
        self._failed_at = -math.inf

    def look(self) -> None:
        """Before the server is opened again: why it ended, if it could not write."""
        failure = disk_failure(self.folder.end_of_log())
        if failure is None:
            return
        problem = (
            f"The embedded server ended because it could not write to its disk ({failure}): free disk space "
            "where the data folder is. It is started again by itself."
        )
        self._note(DISK, "engine_ended", problem)

    def does_not_start(self, problem: EngineFailed) -> None:
        """It is tried again and again: somebody may repair it."""
        self._note(FAILED, "engine_failed", problem.message)

    def _note(self, reason: str, event: str, problem: str) -> None:
        if not self._has_failed_lately() or self._reason != reason:  # once, not at each of many attempts
            log.error(event, folder=str(self.folder.path), problem=problem)
        self._reason, self._failure, self._failed_at = reason, problem, monotonic()

    def problems(self) -> dict[str, str]:
        """Reason -> what is wrong and what to do."""
        found: dict[str, str] = {}
        if self._has_failed_lately():
            found[self._reason] = self._failure
        with contextlib.suppress(OSError):  # nothing was cut off
            noted = self.folder.truncated.stat().st_mtime
            since = datetime.fromtimestamp(noted, UTC).isoformat(timespec="seconds")
            found[TRUNCATED] = CUT_OFF.format(since=since)
        return found

    def _has_failed_lately(self) -> bool:
        return monotonic() - self._failed_at < SETTLED_SECONDS


def disk_failure(log: str) -> str | None:
    """Why the latest run of the server ended, if it could not write to its disk."""
    run = log[max((match.end() for match in STARTED.finditer(log)), default=0) :]
    if not CANNOT_GO_ON.search(run):
        return None
    said = [line for line in run.splitlines() if CANNOT_WRITE.search(line)]
    return _words(said[-1]) if said else "append-only file"


def was_truncated(log: str) -> bool:
    """Whether the server found its append-only file broken off in the middle of an entry, and cut it."""
    return CUT.search(log) is not None


def _words(line: str) -> str:
    """Without the number of the process and the time: `13:M 16 Nov 2026 14:43:14.925 # words`."""
    return line.partition(" # ")[2] or line
