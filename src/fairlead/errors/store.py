"""Errors of the store and its server."""

from fairlead.errors.base import FairleadError


class StoreUnavailable(FairleadError):
    """The store did not answer: repeat the call with the same ids, it happens at most once."""

    http_status, code = 503, "store_unavailable"
    retry_after = 1.0
    names_the_store = True


class StoreFull(StoreUnavailable):
    """The store is out of memory and accepts no new work: let workers drain it, or raise maxmemory."""

    http_status, code = 507, "store_full"
    retry_after = 5.0


class StoreUnsafe(StoreUnavailable):
    """The store may throw tasks away, so no new work is accepted: set its maxmemory-policy to noeviction."""

    code = "store_unsafe"


class NotReplicated(StoreUnavailable):
    """Too few replicas have the change, which may be lost in a fail-over: repeat it with the same ids."""

    code = "not_replicated"


class NotRecorded(StoreUnavailable):
    """It was accepted, but the history has not recorded it in time: repeat it with the same ids."""

    code = "not_recorded"


class WrongNode(StoreUnavailable):
    """The store is one node of a cluster, and another one holds this namespace: use redis+cluster://."""

    code = "wrong_node"


class StoreLost(StoreUnavailable):
    """The store has lost data: restore it, or accept what is left with `fairlead open`."""

    code = "store_lost"

    def __init__(self, message: str | None = None, standing: str = "") -> None:
        super().__init__(message)
        self.standing = standing  # the data compared with what is known: gone, rolled_back, ...


class StoreFault(FairleadError):
    """A script broke; what it had left to write is written by the next act. Run `fairlead doctor`."""

    http_status, code = 503, "store_fault"
    retry_after = 1.0
    names_the_store = True


class UnknownNamespace(FairleadError):
    """This gateway serves no such namespace, or the key is of another: leave it out, or name another."""

    http_status, code = 404, "unknown_namespace"


class NamespaceNotOpen(StoreFault):
    """The namespace is not open, or the server lost its data: open it, then restore what is missing."""

    code = "namespace_not_open"


class UnsuitableServer(FairleadError):
    """This server cannot keep Fairlead's promise."""

    code = "unsuitable_server"


class SchemaTooNew(FairleadError):
    """This namespace was written by a newer Fairlead: upgrade this one."""

    http_status, code = 503, "schema_too_new"


class SchemaTooOld(FairleadError):
    """An older Fairlead wrote this namespace, without lists: start a server of this version to add them."""

    code = "schema_too_old"


class EngineFailed(FairleadError):
    """The embedded server did not start."""

    code = "engine_failed"
