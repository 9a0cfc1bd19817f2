"""What a server refuses, and what goes wrong on the way to it, as errors of Fairlead."""

import re

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fairlead.errors import FairleadError, StoreFault, StoreFull, StoreUnavailable, WrongNode

#: Error codes of a server that is not, or no longer, the primary of our keys: another server is.
NOT_PRIMARY = frozenset({"READONLY", "MASTERDOWN", "UNBLOCKED", "MOVED", "ASK"})
#: Error codes of a server that refuses a command now and will accept it later.
NOT_NOW = frozenset({"LOADING", "BUSY", "MISCONF", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN"})
#: The code begins the text of an error, which the client library quotes when a command of a pipeline fails.
ERROR_CODE = re.compile(r"""(?:^|caused error: \(['"])([A-Z]+)(?: |$)""")

#: An act found that a part of its namespace is on another node already, or that the cluster went down.
SLOT_MOVES = re.compile(r"(?i)attempted to (access a non local key|execute a .*while the cluster is down)")

NODE = re.compile(r"[^\s'\"]+:\d+")  # as MOVED names it


def translated(problem: BaseException, *, follows: bool = False) -> FairleadError:
    """`follows`: the connection goes where the namespace is by itself."""
    if isinstance(problem, OutOfMemoryError):
        return StoreFull()
    if isinstance(problem, RedisConnectionError | RedisTimeoutError | OSError | TimeoutError):
        return StoreUnavailable(f"{StoreUnavailable.__doc__} ({type(problem).__name__}: {problem})")
    if isinstance(problem, RedisError) and error_code(problem) == "MOVED" and not follows:
        node = node_of(problem)
        where = "{}:{}".format(*node) if node else ""
        return WrongNode(
            "The server is one node of a cluster, and another one holds this namespace"
            f"{f' ({where})' if where else ''}: set engine.url to redis+cluster://{where or 'HOST:PORT'}, so "
            "that Fairlead follows the namespace from node to node."
        )
    if isinstance(problem, RedisError) and is_temporary(problem):
        return StoreUnavailable(
            f"The store cannot do this now ({problem}): repeat the call with the same ids."
        )
    return StoreFault(f"{StoreFault.__doc__} ({problem})")


def is_temporary(problem: RedisError) -> bool:
    """Whether the server refused the command because of its own state, before it did anything."""
    return error_code(problem) in NOT_PRIMARY | NOT_NOW or SLOT_MOVES.search(str(problem)) is not None


def node_of(problem: RedisError) -> tuple[str, int] | None:
    """Where a node of a cluster says that the namespace is now. Not for ASK: only a part of it is there."""
    if error_code(problem) != "MOVED" or not (found := NODE.search(str(problem))):
        return None
    host, _, port = found[0].rpartition(":")
    return host, int(port)


def error_code(problem: RedisError) -> str:
    if problem.status_code:  # the client library has cut the code off the text
        return str(problem.status_code)
    match = ERROR_CODE.search(str(problem))
    return match[1] if match else ""
