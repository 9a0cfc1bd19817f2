"""What is wrong with a server that was fit for work when it was opened, by what it says of itself."""

from collections.abc import Mapping

from redis.exceptions import RedisError

from fairlead.errors import FairleadError
from fairlead.store.connection import Connection, error_code, translated

EVICTS, REPLICA, DISK = "store_evicts", "store_is_replica", "store_cannot_save"

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
#: What a server answers to an act when it is in such a state.
REASONS = {"READONLY": REPLICA, "MISCONF": DISK}


async def look(connection: Connection) -> dict[str, str]:
    """Reason -> what is wrong and what to do. On the line that acts use: another may lead elsewhere."""
    (said,) = await connection.guard(connection.line.call(("INFO",)))
    if isinstance(said, RedisError):
        raise translated(said)
    return problems_of(parse_info(said))


def problems_of(info: Mapping[str, str]) -> dict[str, str]:
    """What INFO lacks is not known to be wrong: it was looked at when the server was opened."""
    found: dict[str, str] = {}
    if (policy := info.get("maxmemory_policy", "noeviction")) != "noeviction":
        found[EVICTS] = (
            f"The store's maxmemory-policy is {policy}: it may throw tasks away, so no new work is accepted. "
            "Run `CONFIG SET maxmemory-policy noeviction` and set it in the server's configuration."
        )
    if info.get("role", "master") != "master":
        found[REPLICA] = SENTENCES[REPLICA]
    if info.get("aof_enabled") == "1" and info.get("aof_last_write_status", "ok") != "ok":
        found[DISK] = CANNOT_SAVE.format(what="its append-only file")
    elif info.get("aof_enabled") == "0" and info.get("rdb_last_bgsave_status", "ok") != "ok":
        found[DISK] = CANNOT_SAVE.format(what="a snapshot")
    return found


def problem_behind(refusal: FairleadError) -> dict[str, str]:
    """The same, by what the server answered to an act that it refused."""
    cause = refusal.__cause__
    reason = REASONS.get(error_code(cause)) if isinstance(cause, RedisError) else None
    return {reason: SENTENCES[reason]} if reason else {}


def parse_info(said: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in said.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
