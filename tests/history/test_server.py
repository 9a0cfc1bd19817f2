"""A real server records what happens by a process beside it, and warns when that does not succeed."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from fairlead.api.history_watch import BEHIND, LOST, HistoryWatch
from fairlead.api.readiness import Readiness
from fairlead.history.database import open_database
from fairlead.history.migrations import newest_schema
from fairlead.history.opening import History
from fairlead.model.task import NewTask
from fairlead.settings import Outbox, Settings
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.commands import Shell
from tests.recording import record_all, task_rows
from tests.servers import Server
from tests.store.namespace import new
from tests.waiting import wait_until
from tests.warm import WarmProcess


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    env = {
        "FAIRLEAD_HISTORY__ENABLED": "true",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'history.sqlite3'}",
    }
    return replace(Shell.beside(live_store, server.url, tmp_path), env=env)


@pytest.fixture
async def recorded(live_store: Store, shell: Shell) -> AsyncIterator[History]:
    namespace = live_store.connection.keys.namespace
    opened = History(open_database(shell.env["DATABASE_URL"]), namespace)
    yield opened
    await opened.close()


@contextlib.contextmanager
def running(shell: Shell, *arguments: str) -> Iterator[WarmProcess]:
    """A command that keeps running; what it starts is forked, too."""
    with Path(os.devnull).open("w") as nothing:
        words = [*arguments, *shell.where]
        process = WarmProcess(words, shell.environment, shell.home, nothing, nothing)
        try:
            yield process
        finally:
            process.terminate()
            process.wait_blocking(40)


async def child_of(process: WarmProcess) -> int:
    """The recorder: the server has no other child."""
    found: list[int] = []

    def is_there() -> bool:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        found[:] = map(int, children)
        return bool(found)

    await wait_until(is_there)
    return found[0]


async def until_recorded(history: History, tasks: int) -> None:
    async def are_recorded() -> bool:
        return len(await task_rows(history)) == tasks

    await wait_until(are_recorded)


async def test_a_recorder_that_is_killed_is_replaced_and_nothing_is_missing(
    live_store: Store, shell: Shell, recorded: History
) -> None:
    await recorded.number()
    with running(shell, "server", "--port", "0") as server:
        await live_store.submit_one(NewTask(task_type="echo"))
        await until_recorded(recorded, 1)
        os.kill(await child_of(server), signal.SIGKILL)
        await live_store.submit(*[NewTask(task_type="echo") for _ in range(10)])
        await until_recorded(recorded, 11)
    facts = msgspec.json.decode((await shell.run("history", "status", "--output", "json")).out)
    assert (facts["recorded_events"], facts["unrecorded_events"], facts["lost_events"]) == (11, 0, 0)


async def test_a_recorder_may_run_apart_from_the_servers(
    live_store: Store, shell: Shell, recorded: History
) -> None:
    migrated = await shell.run("history", "migrate")
    assert migrated.out == f"The schema is {newest_schema()}; it was 0.\n"
    await live_store.submit_one(NewTask(task_type="echo"))
    with running(shell, "history", "record") as apart:
        await until_recorded(recorded, 1)
    assert apart.returncode == 0


async def test_without_a_database_the_commands_say_how_to_get_one(shell: Shell) -> None:
    shell = replace(shell, env={"FAIRLEAD_HISTORY__ENABLED": "false"})
    shown = await shell.run("history", "status")
    assert shown.code == 2
    assert "set history.url (or DATABASE_URL)" in shown.err


class TestTheWatch:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(outbox=Outbox(max_events=10))

    async def test_a_lag_and_a_loss_are_warnings_of_a_server_that_stays_ready(
        self, store: Store, history: History, recorder: Recorder
    ) -> None:
        readiness = Readiness()
        watch = HistoryWatch(store, readiness, late_seconds=0.001)
        await store.submit(*[new() for _ in range(10)])
        await watch.look()
        assert readiness.warnings == {}  # there is no recorder
        await recorder.run_once()
        await watch.look()
        assert readiness.warnings == {}
        await store.submit_one(new())
        store.clock.pass_seconds(70)  # type: ignore[attr-defined]
        watch.problem = "no room on the disk"
        await watch.look()
        readiness.check()
        assert readiness.warnings == {
            BEHIND: "The history is 70 s behind, 1 events wait in the store: no room on the disk."
        }
        await store.submit(*[new() for _ in range(10)])
        await watch.look()
        assert set(readiness.warnings) == {LOST}  # those that are left have not waited
        assert "1 so far" in readiness.warnings[LOST]
        await record_all(recorder)
        await watch.look()
        assert set(readiness.warnings) == {LOST}
