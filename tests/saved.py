"""A namespace as it was at some moment: restoring it is cheaper than making it again."""

from copy import copy
from typing import Any

from fairlead.store.connection import Connection
from tests.connections import with_call


class Saved:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.membership = copy(connection.membership)
        self.values: dict[bytes, tuple[int, bytes]] = {}

    @classmethod
    async def of(cls, connection: Connection) -> "Saved":
        saved = cls(connection)
        keys = await saved._keys()
        reads: Any = connection.client.pipeline(transaction=False)
        for key in keys:
            reads.pttl(key).dump(key)
        facts = await reads.execute()
        saved.values = {key: (max(0, facts[2 * i]), facts[2 * i + 1]) for i, key in enumerate(keys)}
        return saved

    async def put_back(self) -> Connection:
        """A user of the returned connection knows of the namespace only what was known then."""
        writes: Any = self.connection.client.pipeline(transaction=True)
        if present := await self._keys():
            writes.delete(*present)
        for key, (ttl, value) in self.values.items():
            writes.restore(key, ttl, value)
        await writes.execute()
        connection = with_call(self.connection, "redis.call")
        connection.membership = copy(self.membership)
        connection.answer_within = self.connection.answer_within
        return connection

    async def _keys(self) -> list[bytes]:
        found = self.connection.client.scan_iter(match=self.connection.keys.prefix + "*", count=1000)
        return [key async for key in found]
