"""The history under kill -9 of its recorder, and while its database hangs or is locked for a minute."""

import asyncio
import random
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.faults.recorders import Recorders, compare, faultless, published, work
from tests.postgresql import Postgresql, running_postgresql
from tests.servers import running

TASKS, TASKS_PER_KILL = 20_000, 100
PAUSE = 2.0  # seconds, at most, between two kills
PATIENCE = 1_200.0  # until the history has caught up
AWAY_SECONDS = 60.0


def run(options: Options) -> None:
    kills = options.sized(50)
    print(f"recorder: seed {options.seed}, {kills} kills", flush=True)
    found: dict[str, Any] = {}
    for kind in ("sqlite", "postgresql"):
        found[f"{kind}_killed"] = asyncio.run(_killed(options.seed, kind, kills, kills * TASKS_PER_KILL))
        found[f"{kind}_away"] = asyncio.run(_away(kind, options.size or TASKS))
    print(f"kept in {keep('recorder', {'seed': options.seed, **found})}")


async def _killed(seed: int, kind: str, kills: int, tasks: int) -> dict[str, Any]:
    async with _scene(kind) as (store, recorders, url, _):
        done = asyncio.Event()
        async with published(store) as seen:
            killing = asyncio.create_task(
                recorders.kill_again_and_again(random.Random(seed), kills, done, PAUSE)
            )
            await work(store, tasks)
            done.set()
            await killing
        return _judged(kind, {"kills": recorders.killed} | await compare(store, url, seen, PATIENCE), tasks)


async def _away(kind: str, tasks: int) -> dict[str, Any]:
    """Half of the work is done while the database is away."""
    async with _scene(kind) as (store, _, url, server):
        async with published(store) as seen:
            present = await _timed(work(store, tasks // 2))
            with _absent(kind, url, server):
                began = time.monotonic()
                absent = await _timed(work(store, tasks // 2))
                await asyncio.sleep(max(0.0, AWAY_SECONDS - (time.monotonic() - began)))
        caught_up = time.monotonic()
        found = await compare(store, url, seen, PATIENCE)
        speed = {"tasks_per_second": tasks / 2 / present, "tasks_per_second_while_away": tasks / 2 / absent}
        figures = {name: round(value) for name, value in speed.items()}
        figures |= {"away_seconds": AWAY_SECONDS, "caught_up_seconds": round(time.monotonic() - caught_up, 1)}
        return _judged(kind, figures | found, tasks)


def _judged(kind: str, figures: dict[str, Any], tasks: int) -> dict[str, Any]:
    print(kind, figures, flush=True)
    expected = faultless(tasks)
    assert {name: figures[name] for name in expected} == expected
    return figures


async def _timed(done: Any) -> float:
    began = time.monotonic()
    await done
    return time.monotonic() - began


@asynccontextmanager
async def _scene(kind: str) -> AsyncIterator[tuple[Store, Recorders, str, Postgresql | None]]:
    with (
        running("valkey") as server,
        tempfile.TemporaryDirectory() as folder,
        _database(kind, folder) as (url, sql),
    ):
        async with Store.connect(server.url) as store:
            recorders = Recorders(server.url, store, url, Path(folder))
            await recorders.start()
            try:
                yield store, recorders, url, sql
                breaches = await examine(store.connection)
                assert not breaches, breaches
            finally:
                await recorders.kill()


@contextmanager
def _database(kind: str, folder: str) -> Iterator[tuple[str, Postgresql | None]]:
    if kind == "sqlite":
        yield f"sqlite:///{folder}/history.sqlite3", None
        return
    with running_postgresql() as server:
        yield server.new_database(), server


@contextmanager
def _absent(kind: str, url: str, server: Postgresql | None) -> Iterator[None]:
    """Locked by another process, or not answering."""
    if server:
        server.pause()
        try:
            yield
        finally:
            server.resume()
        return
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=60)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()
