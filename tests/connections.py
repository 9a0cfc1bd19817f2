"""Connections of a test's own store, which checks answers and not how soon they come."""

from collections.abc import Awaitable, Callable

from fairlead.errors import StoreLost, StoreUnavailable
from fairlead.settings import Settings
from fairlead.store.connection import Connection
from fairlead.store.store import Store

PATIENCE = 20.0  # seconds; on a busy machine the test or its server may hang for a while


class PatientConnection(Connection):
    answer_within = PATIENCE


def with_call(connection: Connection, call: str) -> Connection:
    """The same connection, but scripts call the server by another name."""
    other = Connection(connection.route, connection.keys, call)
    other.shared, other.membership = connection.shared, connection.membership
    return other


async def is_answered(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether the store is available; data that it has lost is no reason to try again."""
    try:
        await call()
    except StoreUnavailable as problem:
        assert not isinstance(problem, StoreLost), problem
        return False
    return True


def connected(url: str, namespace: str) -> PatientConnection:
    connection = PatientConnection.to(url, namespace)
    connection.client.connection_pool.connection_kwargs["socket_connect_timeout"] = PATIENCE
    return connection


def patient_store(url: str, namespace: str = "default", settings: Settings | None = None) -> Store:
    """`Store.connect`, for tests that are not about how long it waits."""
    return Store(connected(url, namespace), settings or Settings())
