"""Rows of the history for other programs: as CSV, JSON lines and Parquet, each with the same content."""

import csv
import json
from pathlib import Path
from typing import Any

import arro3.io
import pytest

from fairlead.cli.export import write
from fairlead.history import exporting
from fairlead.history.exporting import COLUMNS, exported
from fairlead.history.opening import History
from fairlead.store.store import Store
from fairlead.times import time_text
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import record_all
from tests.store.job_steps import complete, job
from tests.store.namespace import claim_one, new


async def test_all_formats_have_the_same_rows(
    store: Store,
    clock: Clock,
    history: History,
    recorder: Recorder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit_one(new("before"))
    await complete(store, await claim_one(store))
    clock.pass_seconds(10)
    await store.workers.register("w", capacity=9)
    since = clock.now
    await store.submit(*[new(parameters={"n": n}, user_id='a "b", c') for n in range(5)])
    await complete(store, await claim_one(store), {"text": "é\n😀"})
    await record_all(recorder)
    monkeypatch.setattr(exporting, "AT_ONCE", 2)
    for form in ("csv", "jsonl", "parquet"):
        await write(form, tmp_path / form, COLUMNS["tasks"], exported(history, "tasks", since))
    lines = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    assert len(lines) == 5
    assert (lines[0]["status"], lines[0]["parameters"], lines[0]["user_id"]) == (
        "completed",
        {"n": 0},
        'a "b", c',
    )
    assert lines[0]["result"] == {"text": "é\n😀"}
    assert lines[0]["created_at"] == time_text(since)
    table: Any = arro3.io.read_parquet(tmp_path / "parquet").read_all()
    with (tmp_path / "csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    for name in ("id", "status", "priority", "user_id", "error_code"):
        column = [one.as_py() for one in table.column(name)]
        assert column == [line[name] for line in lines]
        assert [row[name] for row in rows] == [line[name] or "" for line in lines]
    assert [json.loads(one.as_py()) for one in table.column("parameters")] == [{"n": n} for n in range(5)]
    assert [json.loads(row["parameters"]) for row in rows] == [{"n": n} for n in range(5)]
    assert table.column("created_at")[0].as_py().timestamp() * 1000 == since


async def test_events_and_jobs_of_a_time_are_exported(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    await store.workers.register("w", capacity=9)
    await store.jobs.submit(job())
    clock.pass_seconds(10)
    since = clock.now
    await store.workers.register("w", capacity=9)
    await complete(store, await claim_one(store))
    later = await store.jobs.submit(job())
    await record_all(recorder)
    names = [column.name for column in COLUMNS["events"]]
    events = [dict(zip(names, row, strict=True)) async for row in exported(history, "events", since)]
    assert [(one["event"], one["act"], one["to"]) for one in events] == [
        (2, "claim", "executing"),
        (3, "complete", "completed"),
        (4, "submit", "queued"),
        (5, "submit", "queued"),
    ]
    assert [row[0] async for row in exported(history, "jobs", since)] == [later.job_id]
    assert [row async for row in exported(history, "jobs", since, since - 1)] == []
