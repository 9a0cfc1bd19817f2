"""The history in a SQLite file: one thread writes, another one reads."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fairlead.errors import HistoryUnavailable
from fairlead.history.database import Row

BUSY_MS = 2_000  # to wait for another process that writes
GIVEN_BACK_AT_ONCE, MOST_GIVEN_BACK = 100, 5_000  # pages; writers wait for the first
TYPES = (("BIGKEY", "INTEGER PRIMARY KEY"), ("BYTES", "BLOB"))

T = TypeVar("T")


class Connection:
    """One connection, used in a thread of its own. What SQLite says is wrong becomes HistoryUnavailable."""

    def __init__(self, path: Path, pragmas: Sequence[str]) -> None:
        self._path, self._pragmas = path, pragmas
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._opened: sqlite3.Connection | None = None

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """To the end, also when the caller is cancelled: a statement that runs on would meet the next."""

        def run() -> T:
            try:
                return work(self._connection())
            except sqlite3.Error as problem:
                raise HistoryUnavailable(f"{self._path}: {problem}") from problem

        running = asyncio.get_running_loop().run_in_executor(self._thread, run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise HistoryUnavailable(f"{self._path}: {problem.strerror}") from None
            opened = sqlite3.connect(self._path, timeout=BUSY_MS / 1000, isolation_level=None)
            for pragma in self._pragmas:
                opened.execute(f"PRAGMA {pragma}")
            self._opened = opened
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self.call(lambda opened: opened.close())
            self._opened = None
        self._thread.shutdown()


class Writing:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return await self._connection.call(lambda opened: opened.execute(sql, values).fetchall())

    async def run(self, sql: str, *values: Any) -> int:
        return await self._connection.call(lambda opened: opened.execute(sql, values).rowcount)

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        if rows:
            await self._connection.call(lambda opened: opened.executemany(sql, rows))


class Sqlite:
    name = "sqlite"

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        # the first counts only in a file that is made by it, and before the second has made that
        pragmas = (
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            f"synchronous = {'FULL' if durable else 'NORMAL'}",
        )
        self.path = path
        self._writer = Connection(path, pragmas)
        self._reader = Connection(path, pragmas)
        self._writing = asyncio.Lock()

    def exists(self) -> bool:
        return self.path.exists()

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return await Writing(self._reader).read(sql, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Writing]:
        async with self._writing:
            await self._writer.call(lambda opened: opened.execute("BEGIN IMMEDIATE"))
            try:
                yield Writing(self._writer)
                await self._writer.call(lambda opened: opened.execute("COMMIT"))
            except BaseException:
                await self._writer.call(_roll_back)
                raise

    migrating = transaction

    def statements(self, script: str) -> Iterable[str]:
        for word, meaning in TYPES:
            script = script.replace(f" {word}", f" {meaning}")
        statement = ""
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""

    async def size(self) -> int:
        """Without the room in the file that is free."""
        ((pages, free, bytes_each),) = await self.read(
            "SELECT page_count, freelist_count, page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
        )
        return int((pages - free) * bytes_each)

    async def give_back(self) -> None:
        """In steps, between which others write."""
        for _ in range(MOST_GIVEN_BACK // GIVEN_BACK_AT_ONCE):
            ((free,),) = await self.read("PRAGMA freelist_count")
            if not free:
                return
            async with self._writing:
                await self._writer.call(_give_back)

    async def copy_to(self, target: Path) -> None:
        """As it is at one instant, while others write."""

        def copy(opened: sqlite3.Connection) -> None:
            with contextlib.closing(sqlite3.connect(target)) as copied:
                opened.backup(copied)

        await self._reader.call(copy)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()


def _give_back(opened: sqlite3.Connection) -> None:
    # a script, because `execute` takes the first step only, and each frees one page
    opened.executescript(f"PRAGMA incremental_vacuum({GIVEN_BACK_AT_ONCE})")


def _roll_back(opened: sqlite3.Connection) -> None:
    if opened.in_transaction:  # a full disk has ended it already
        opened.execute("ROLLBACK")
