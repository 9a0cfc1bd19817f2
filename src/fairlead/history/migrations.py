"""The schema of the history: files that are applied in the order of their numbers, each once."""

from functools import cache
from importlib.resources import files

from fairlead.errors import HistoryTooNew
from fairlead.history.database import Database, Transaction

APPLIED = "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)"


@cache
def scripts() -> list[str]:
    """The files of the schema, the first at index 0."""
    folder = files("fairlead.history") / "schema"
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(folder / name).read_text() for name in found]


def newest_schema() -> int:
    return len(scripts())


async def migrate(database: Database) -> tuple[int, int]:
    """Brings the schema up to date, in one transaction; returns the version before and now.

    Safe with several processes: the others wait, and find nothing to do. A newer schema is left alone.
    """
    known = scripts()
    async with database.migrating() as transaction:
        await transaction.run(APPLIED)
        before = await _version(transaction)
        if before > len(known):
            raise HistoryTooNew(
                f"The history has schema {before}, this Fairlead knows {len(known)}: upgrade it."
            )
        for version, script in enumerate(known[before:], before + 1):
            for statement in database.statements(script):
                await transaction.run(statement)
            await transaction.run("INSERT INTO migrations (version) VALUES (?)", version)
    return before, len(known)


async def _version(transaction: Transaction) -> int:
    ((version,),) = await transaction.read("SELECT COALESCE(MAX(version), 0) FROM migrations")
    return int(version)
