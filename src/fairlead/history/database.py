"""What a database of the history can do; `?` marks the values of a statement, whatever the database."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from fairlead.errors import InvalidSettings

#: That grow with the work.
TABLES = ("tasks", "task_limits", "attempts", "events", "jobs", "job_limits", "audit")

Row = tuple[Any, ...]


class Transaction(Protocol):
    async def read(self, sql: str, *values: Any) -> list[Row]: ...

    async def run(self, sql: str, *values: Any) -> int:
        """How many rows it changed."""
        ...

    async def run_many(self, sql: str, rows: Sequence[Row]) -> None: ...


class Database(Protocol):
    """Raises HistoryUnavailable when it does not answer; nothing of a transaction is kept then."""

    name: str  #: sqlite or postgresql

    def exists(self) -> bool:
        """False: it is made by the first call."""
        ...

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Outside of a transaction, beside those that write."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Only one writes at a time: it sees all that others have written, and is kept as a whole."""
        ...

    def migrating(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that no other process migrates beside."""
        ...

    def statements(self, script: str) -> Iterable[str]:
        """The statements of a file of the schema, in the words of this database."""
        ...

    async def size(self) -> int:
        """About how many bytes the rows of all namespaces take."""
        ...

    async def give_back(self) -> None:
        """To the disk, what deleted rows have left."""
        ...

    async def close(self) -> None: ...


def open_database(url: str, *, durable: bool = False) -> Database:
    """Connects at the first use. `durable`: what is kept outlasts a loss of power too."""
    if url.startswith("sqlite://"):
        from fairlead.history.sqlite import Sqlite

        return Sqlite(Path(url.removeprefix("sqlite:///")), durable=durable)
    try:
        from fairlead.history.postgresql import Postgresql
    except ModuleNotFoundError:
        words = "a history in PostgreSQL needs a package: pip install 'fairlead[postgres]'"
        raise InvalidSettings(words) from None
    return Postgresql(url)
