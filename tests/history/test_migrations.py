"""The schema: applied once, whoever comes first; the same however it came about; a newer one is refused."""

import asyncio
from importlib.resources import files

import pytest

from fairlead.errors import HistoryTooNew
from fairlead.history.database import Database, open_database
from fairlead.history.migrations import migrate, newest_schema, scripts
from fairlead.history.opening import History
from tests.postgresql import Postgresql

COLUMNS = {
    "sqlite": 'SELECT m.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master m '
    "JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'migrations' ORDER BY 1, c.cid",
    "postgresql": "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE table_schema = 'public' AND table_name <> 'migrations' ORDER BY 1, ordinal_position",
}
INDEXES = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
    "AND tablename <> 'migrations' ORDER BY 1",
}


async def schema_of(database: Database) -> list[list[tuple[object, ...]]]:
    return [await database.read(INDEXES[database.name]), await database.read(COLUMNS[database.name])]


async def test_a_migration_is_applied_once(history: History) -> None:
    assert await migrate(history.database) == (0, newest_schema())
    assert await migrate(history.database) == (newest_schema(), newest_schema())


async def test_several_processes_may_migrate_at_once(history_url: str) -> None:
    """Each with its connections: as processes they would differ by nothing."""
    databases = [open_database(history_url) for _ in range(4)]
    try:
        done = await asyncio.gather(*map(migrate, databases))
        assert sorted(done) == [(0, newest_schema()), *[(newest_schema(), newest_schema())] * 3]
    finally:
        for database in databases:
            await database.close()


async def test_the_schema_is_the_sum_of_the_migrations(history: History) -> None:
    """From each earlier version: the same tables, columns and indexes as from nothing."""
    database = history.database
    await migrate(database)
    expected = await schema_of(database)
    assert expected[0] and len(expected[1]) > 60
    for version in range(newest_schema()):
        await _drop_all(database)
        await _begin_with(database, version)
        assert await migrate(database) == (version, newest_schema())
        assert await schema_of(database) == expected


async def _begin_with(database: Database, version: int) -> None:
    async with database.migrating() as transaction:
        await transaction.run("CREATE TABLE migrations (version INTEGER PRIMARY KEY)")
        for number, script in enumerate(scripts()[:version], 1):
            for statement in database.statements(script):
                await transaction.run(statement)
            await transaction.run("INSERT INTO migrations (version) VALUES (?)", number)


async def _drop_all(database: Database) -> None:
    async with database.migrating() as transaction:
        for (name,) in await transaction.read(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if database.name == "sqlite"
            else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ):
            await transaction.run(f"DROP TABLE {name}")


async def test_jobs_of_an_earlier_version_are_found_by_their_limits(history: History) -> None:
    database = history.database
    await _begin_with(database, 2)
    async with database.transaction() as transaction:
        for place, job, namespace in ((7, "j1", 1), (8, "j2", 1), (9, "j1", 2)):
            await transaction.run(
                "INSERT INTO jobs (place, namespace, id, feature_name, status, priority, created_at, record, "
                "event) VALUES (?, ?, ?, 'f', 'COMPLETED', 2, 0, ?, 1)",
                *(place, namespace, job, b""),
            )
        for place, of in ((17, "j1"), (18, "j1"), (19, None)):
            await transaction.run(
                "INSERT INTO tasks (place, namespace, id, task_type, status, priority, job_id, created_at, "
                "attempts, fence, record, event) VALUES (?, 1, ?, 't', 'completed', 2, ?, 0, 1, 1, ?, 1)",
                *(place, f"t{place}", of, b""),
            )
            await transaction.run("INSERT INTO task_limits VALUES (1, 'gpu', ?)", place)
    assert await migrate(database) == (2, newest_schema())
    assert await database.read("SELECT * FROM job_limits") == [(1, "gpu", 7)]


async def test_a_newer_schema_is_left_alone(history: History) -> None:
    await migrate(history.database)
    async with history.database.transaction() as transaction:
        await transaction.run("INSERT INTO migrations (version) VALUES (?)", newest_schema() + 1)
    before = await schema_of(history.database)
    with pytest.raises(HistoryTooNew, match=f"has schema {newest_schema() + 1}.*upgrade it"):
        await history.number()
    assert await schema_of(history.database) == before


async def test_each_namespace_has_a_number(history_url: str) -> None:
    """Also when several processes open them at once, one of which finds no schema."""
    opened = [History(open_database(history_url), name) for name in ("a", "b", "a", "b")]
    try:
        first, second, third, fourth = await asyncio.gather(*(one.number() for one in opened))
        assert (first, second) == (third, fourth)
        assert {first, second} == {1, 2}
    finally:
        for one in opened:
            await one.close()


def test_the_files_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in (files("fairlead.history") / "schema").iterdir())
    assert names == [f"{number:04}.sql" for number in range(1, newest_schema() + 1)]


async def test_a_server_that_was_stopped_and_started_again_is_found(postgresql: Postgresql) -> None:
    history = History(open_database(postgresql.new_database()), "default")
    try:
        number = await history.number()
        await asyncio.to_thread(postgresql.stop)
        await asyncio.to_thread(postgresql.start)
        assert await history.database.read("SELECT id FROM namespaces") == [(number,)]
    finally:
        await history.close()
