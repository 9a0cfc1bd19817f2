"""The history in PostgreSQL."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from itertools import count
from typing import Any

import asyncpg

from fairlead.errors import HistoryUnavailable
from fairlead.history.database import TABLES, Row

CONNECT_SECONDS = 5.0
MOST_CONNECTIONS = 4  # of a process
STATEMENT_SECONDS = 30.0
LOCK = 0x6661_6972  # of migrations
SAMPLED_PAGES, PAGE_BYTES = 1_000, 8_192
TYPES = (("BIGKEY", "BIGINT PRIMARY KEY"), ("BYTES", "BYTEA"))
#: A plan for any value may scan all rows for a rare one; only what writes, row after row, keeps its plan.
PLANS = {"plan_cache_mode": "force_custom_plan"}
KEEP_PLANS = "SET LOCAL plan_cache_mode = auto"
AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@lru_cache(1000)
def numbered(sql: str) -> str:
    """PostgreSQL numbers its marks: $1, $2."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)


@contextmanager
def answering() -> Iterator[None]:
    try:
        yield
    except AWAY as problem:
        raise HistoryUnavailable(f"PostgreSQL: {problem or type(problem).__name__}") from problem


class Writing:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return [tuple(row) for row in await self._connection.fetch(numbered(sql), *values)]

    async def run(self, sql: str, *values: Any) -> int:
        status: str = await self._connection.execute(numbered(sql), *values)
        changed = status.rpartition(" ")[2]
        return int(changed) if changed.isdigit() else 0

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        if rows:
            await self._connection.executemany(numbered(sql), rows)


class Postgresql:
    name = "postgresql"

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None
        self._opening = asyncio.Lock()

    def exists(self) -> bool:
        return True

    async def read(self, sql: str, *values: Any) -> list[Row]:
        with answering():
            async with (await self._connections()).acquire(timeout=CONNECT_SECONDS) as connection:
                return await Writing(connection).read(sql, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Writing]:
        with answering():
            pool = await self._connections()
            async with pool.acquire(timeout=CONNECT_SECONDS) as connection, connection.transaction():
                await connection.execute(KEEP_PLANS)
                yield Writing(connection)

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Writing]:
        async with self.transaction() as transaction:
            await transaction.read("SELECT pg_advisory_xact_lock(?)", LOCK)
            yield transaction

    def statements(self, script: str) -> Iterable[str]:
        for word, meaning in TYPES:
            script = script.replace(f" {word}", f" {meaning}")
        yield script

    async def size(self) -> int:
        """From a sample of the rows, compressed as they are; without indexes, and what a vacuum frees."""
        total = 0.0
        for table in TABLES:
            ((pages,),) = await self.read(f"SELECT pg_relation_size('{table}') / {PAGE_BYTES}")
            percent = 100 if pages <= SAMPLED_PAGES else 100 * SAMPLED_PAGES / pages
            sampled = f"{table} AS one TABLESAMPLE SYSTEM ({percent})"
            ((size,),) = await self.read(f"SELECT COALESCE(SUM(pg_column_size(one.*)), 0) FROM {sampled}")
            total += size * 100 / percent
        return round(total)

    async def give_back(self) -> None:
        """Autovacuum does."""

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    async def _connections(self) -> Any:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    timeout=CONNECT_SECONDS,
                    command_timeout=STATEMENT_SECONDS,
                    server_settings=PLANS,
                )
            return self._pool
