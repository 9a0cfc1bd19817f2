"""Refuses a server that cannot keep the promise: it forgets under pressure, is too old, or is a replica."""

from collections.abc import Mapping
from typing import Any

from redis.exceptions import RedisError

from fairlead.errors import UnsuitableServer
from fairlead.store.connection import Connection, text
from fairlead.store.engine.state import parse_info

OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)


async def check(connection: Connection) -> None:
    """Look at a server before it is trusted with work."""
    info = parse_info(await connection.call("INFO"))
    check_server(info, await _maxmemory_policy(connection) or info.get("maxmemory_policy", ""))


async def _maxmemory_policy(connection: Connection) -> str:
    command = ("CONFIG", "GET", "maxmemory-policy")
    (policy,) = await connection.guard(connection.line.call(command))
    # Managed services often forbid CONFIG; INFO says the same.
    return "" if isinstance(policy, RedisError) else text(policy.get(b"maxmemory-policy", b""))


def check_server(info: Mapping[str, Any], maxmemory_policy: str) -> None:
    """Judge a server by its INFO and its eviction policy."""
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
        said = (
            f"maxmemory-policy is {maxmemory_policy}" if maxmemory_policy else "maxmemory-policy is not known"
        )
        raise UnsuitableServer(
            f"{said}: under memory pressure this server would throw tasks away; "
            "run `CONFIG SET maxmemory-policy noeviction` and set it in the server's configuration"
        )


def _version(info: Mapping[str, Any]) -> tuple[str, str, tuple[int, int]]:
    # Valkey calls itself Redis 7.2.4 for old clients' sake; its own version stands beside that.
    if "valkey_version" in info:
        return "Valkey", str(info["valkey_version"]), OLDEST_VALKEY
    return "Redis", str(info.get("redis_version", "of unknown version")), OLDEST_REDIS


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else (0,)
