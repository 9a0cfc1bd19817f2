"""The history for these settings."""

from fairlead.errors import HistoryUnavailable
from fairlead.history.database import Database, open_database
from fairlead.history.migrations import migrate, newest_schema
from fairlead.settings import Settings
from fairlead.settings.folders import data_folder

FILE = "history.sqlite3"  # in the data folder
KNOWN = "SELECT (SELECT MAX(version) FROM migrations), (SELECT id FROM namespaces WHERE name = ?)"
REGISTER = (
    "INSERT INTO namespaces (id, name) SELECT COALESCE(MAX(id), 0) + 1, CAST(? AS TEXT) FROM namespaces "
    "WHERE true ON CONFLICT (name) DO NOTHING"
)


class History:
    """The history of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self.database, self.namespace = database, namespace
        self._number = 0

    async def number(self) -> int:
        """By which tables know the namespace. The first call brings the schema up to date."""
        if not self._number:
            schema, number = await self._known()
            if schema != newest_schema() or not number:
                await migrate(self.database)
                number = await self._register()
            self._number = number
        return self._number

    async def known_number(self) -> int:
        """The same for those that only read: 0 while nothing was recorded, and nothing is written."""
        if self._number or not self.database.exists():
            return self._number
        schema, number = await self._known()
        if not schema:
            await self.database.read("SELECT 1")  # it is there, and has no tables yet
        if schema > newest_schema():
            raise HistoryUnavailable("a newer Fairlead has written the history: upgrade this one")
        if number and schema == newest_schema():
            self._number = number
        return self._number

    async def close(self) -> None:
        await self.database.close()

    async def _known(self) -> tuple[int, int]:
        """Without a lock: usually nothing is missing, and another process may be writing."""
        try:
            ((schema, number),) = await self.database.read(KNOWN, self.namespace)
        except HistoryUnavailable:  # or there is no table yet
            return 0, 0
        return schema or 0, number or 0

    async def _register(self) -> int:
        async with self.database.migrating() as transaction:
            await transaction.run(REGISTER, self.namespace)
            found = await transaction.read("SELECT id FROM namespaces WHERE name = ?", self.namespace)
        return int(found[0][0])


def open_history(settings: Settings, *, durable: bool = False) -> History | None:
    """Connects at the first use. None: there is none. `durable`: what is kept outlasts a loss of power."""
    url = history_url(settings)
    return History(open_database(url, durable=durable), settings.engine.namespace) if url else None


def history_url(settings: Settings) -> str | None:
    """Beside a server of one's own there is no default: a file on each machine would scatter the history."""
    if not settings.history.enabled or settings.engine.is_gateway:
        return None
    if settings.history.url or settings.engine.url:
        return settings.history.url
    return f"sqlite:///{data_folder(settings.engine) / FILE}"
