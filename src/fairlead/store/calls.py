"""Waiting for a word of the store: a list that somebody pushes to, read by the one it is for."""

from redis.exceptions import RedisError

from fairlead.store.connection import Connection, translated


class Calls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def next(self, key: str, of: str, seconds: float) -> bytes | None:
        """The next word; None when there is none within `seconds`. The server ends the wait."""
        try:
            return await self._connection.pops.next(self._connection.keys.key(key, of), seconds)
        except (RedisError, OSError, TimeoutError) as problem:
            raise translated(problem) from problem
