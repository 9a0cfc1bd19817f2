"""Scripts that break in the middle: the k-th call to the server fails."""

from fairlead.store.connection import Connection
from fairlead.store.store import Store


def failing_at(k: int) -> str:
    return (
        "(function() local calls = 0 return function(...) calls = calls + 1 "
        f'if calls == {k} then error("planted fault") end return redis.call(...) end end)()'
    )


def plant(store: Store, connection: Connection) -> None:
    store.connection = connection
    store.workers._connection = connection
