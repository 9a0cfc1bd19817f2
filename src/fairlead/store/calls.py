"""Waiting for a word of the store: a list that somebody pushes to, read by the one it is for."""

from redis.exceptions import RedisError

from fairlead.clock import patient
from fairlead.store.connection import Connection, translated
from fairlead.store.wire import Waits


class Calls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waits = Waits()

    async def next(self, key: str, of: str, seconds: float, late: float) -> bytes | None:
        """The next word; None when there is none within `seconds`. The server ends the wait.

        If it has gone without a word, we do, `late` seconds later.
        """
        blpop = ("BLPOP", self._connection.keys.key(key, of), max(0.01, seconds))
        try:
            with patient(seconds + late):
                called = await self._waits.call(self._connection.client, blpop)
            if isinstance(called, RedisError):
                raise called
        except (RedisError, OSError, TimeoutError) as problem:
            raise translated(problem) from problem
        return None if called is None else called[1]

    def close(self) -> None:
        self._waits.close()
