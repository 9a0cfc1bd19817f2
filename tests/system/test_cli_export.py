"""`fairlead history export` and `fairlead simulate --record`: the past as files."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.commands import Shell
from tests.recording import record_all
from tests.servers import Server
from tests.store.job_steps import complete
from tests.store.namespace import claim_one, new


@pytest.fixture
async def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    """Beside a namespace in which one task has run."""
    url = f"sqlite:///{tmp_path}/history.sqlite3"
    history = History(open_database(url), live_store.connection.keys.namespace)
    await live_store.workers.register("w")
    await live_store.submit(new(parameters={"n": 1}), new("waits"))
    await complete(live_store, await claim_one(live_store))
    await record_all(Recorder(live_store, history))
    await history.close()
    env = {"DATABASE_URL": url, "FAIRLEAD_HISTORY__ENABLED": "true"}
    return replace(Shell.beside(live_store, server.url, tmp_path), env=env)


async def test_rows_go_to_a_file_or_to_the_standard_output(shell: Shell) -> None:
    printed = await shell.run("history", "export")
    assert printed.code == 0, printed
    rows = [*csv.DictReader(io.StringIO(printed.out))]
    assert [(row["task_type"], row["status"]) for row in rows] == [("echo", "completed"), ("waits", "queued")]
    written = await shell.run("history", "export", "events.jsonl", "--rows", "events", "--since", "1h")
    assert (written.code, written.out) == (0, ""), written
    lines = [json.loads(line) for line in (shell.home / "events.jsonl").read_text().splitlines()]
    assert [line["act"] for line in lines] == ["submit", "submit", "claim", "complete"]
    refused = await shell.run("history", "export", "--format", "parquet")
    assert (refused.code, "name a file" in refused.err) == (2, True), refused
    refused = await shell.run("history", "export", "no/such/folder.csv")
    assert (refused.code, "cannot write" in refused.err) == (2, True), refused


async def test_the_past_is_recorded_as_a_trace_and_played(shell: Shell) -> None:
    recorded = await shell.run("simulate", "--record", "day.csv", "--since", "1h")
    assert (recorded.code, "wrote 1 tasks" in recorded.err) == (0, True), recorded
    played = await shell.run("simulate", "day.csv", "--output", "json")
    assert json.loads(played.out)["tasks"] == 1
    for words in ((), ("day.csv", "--record", "other.csv")):
        refused = await shell.run("simulate", *words)
        assert (refused.code, "--record" in refused.err) == (2, True), refused
