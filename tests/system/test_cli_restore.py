"""`fairlead restore`: what it shows before, what it brings back, and what it leaves in the audit."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.settings import Settings
from fairlead.store.monitor import Monitor
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.commands import Shell
from tests.faults.fleet import HASTE, file_of
from tests.recording import record_all
from tests.servers import Server
from tests.store.job_steps import job
from tests.store.namespace import key_names, new, raw


@pytest.fixture
def settings() -> Settings:
    return HASTE


@pytest.fixture
async def history(live_store: Store, tmp_path: Path) -> AsyncIterator[History]:
    database = open_database(f"sqlite:///{tmp_path}/history.sqlite3")
    opened = History(database, live_store.connection.keys.namespace)
    yield opened
    await opened.close()


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    (tmp_path / "fairlead.toml").write_text(file_of(HASTE))
    url = {"DATABASE_URL": f"sqlite:///{tmp_path}/history.sqlite3", "FAIRLEAD_HISTORY__ENABLED": "true"}
    return replace(Shell.beside(live_store, server.url, tmp_path), env=url)


async def test_what_was_lost_is_shown_restored_and_noted(
    shell: Shell, live_store: Store, history: History
) -> None:
    await live_store.submit(new(limits={"gpu": 1}, concurrency_limit=2, concurrency_group="gpu"), new())
    await live_store.jobs.submit(job())
    await record_all(Recorder(live_store, history))
    assert (await shell.run("restore", "--dry-run")).out.startswith("Nothing is lost")
    whole = await shell.run("restore")
    assert (whole.code, "Nothing is lost" in whole.err) == (2, True), whole
    await raw(live_store).delete(
        *[live_store.connection.keys.prefix + name for name in await key_names(live_store)]
    )
    await Monitor(live_store).check()
    plan = await shell.run("restore", "--dry-run")
    assert plan.out.splitlines() == [
        "tasks: 3 queued",
        "jobs: 1 pending",
        "The store has lost it: `fairlead restore` brings it back.",
    ]
    done = await shell.run("restore", "--output", "json")
    assert done.code == 0, done
    answer = json.loads(done.out)
    assert (answer["tasks"], answer["jobs"]) == ({"queued": 3}, {"PENDING": 1})
    await live_store.open()
    assert len((await live_store.list_tasks()).tasks) == 3
    (entry,) = (await live_store.audit.page()).entries
    assert (entry.act, entry.after["tasks"]) == ("restore", {"queued": 3})
    examined = await shell.run("doctor")
    assert examined.code == 0, examined


async def test_without_a_history_it_says_what_to_set(shell: Shell) -> None:
    refused = await replace(shell, env={}).run("restore")
    assert (refused.code, "set history.url" in refused.err) == (2, True), refused
