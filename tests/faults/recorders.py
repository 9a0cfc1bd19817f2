"""A history under faults: work goes on, and afterwards SQL has every event of the stream, once."""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.model.reports import Completed
from fairlead.model.task import NewTask
from fairlead.store.keys import CHANNEL
from fairlead.store.records import rows_of
from fairlead.store.store import Store
from fairlead.upkeep.recording import Recording
from tests.waiting import wait_until
from tests.warm import ENVIRONMENT, WarmProcess

AT_ONCE = 50  # tasks of a submit, and of a claim
QUICK = 0.02


class Seen(NamedTuple):
    """An event, as it was published and as it is recorded."""

    task: str
    seq: int
    act: str
    before: str
    after: str
    at: int
    fence: int


def record() -> None:
    """The program of a recorder: a server, a namespace and a database."""
    url, namespace, database = sys.argv[1:4]

    async def run() -> None:
        store, history = Store.connect(url, namespace), History(open_database(database), "default")
        made = Recording(store, history, idle_seconds=QUICK, longest_pause=10 * QUICK, elected_seconds=0.3)
        await made.run()

    asyncio.run(run())


class Recorders:
    """One at a time, as a process, which may be killed."""

    def __init__(
        self,
        url: str,
        store: Store,
        database: str,
        folder: Path,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """`prepare` is called in the new process first."""
        self._arguments = (url, store.connection.keys.namespace, database)
        self._store, self._folder, self._prepare = store, folder, prepare
        self._process: WarmProcess | None = None
        self.killed = 0

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    async def start(self) -> None:
        """Until it records."""
        self.launch()

        async def has_begun() -> bool:
            return await self._store.outbox.lag() is not None

        await wait_until(has_begun)

    def launch(self) -> None:
        with (self._folder / "recorder.log").open("ab") as log:
            env = {**ENVIRONMENT, "PYTHONUNBUFFERED": "1"}
            self._process = WarmProcess(
                self._arguments, env, self._folder, log, log, prepare=self._prepare, program=record
            )

    async def kill(self) -> None:
        if self._process:
            self._process.kill()
            await self._process.wait()
            self._process = None

    async def kill_again_and_again(
        self, chance: random.Random, times: int, done: asyncio.Event, pause: float = 0.4
    ) -> None:
        """Until the work is done, and this often, after at most this pause."""
        while self.killed < times or not done.is_set():
            await asyncio.sleep(chance.uniform(0.02, pause))
            await self.kill()
            self.killed += 1
            self.launch()


@asynccontextmanager
async def published(store: Store) -> AsyncIterator[list[Seen]]:
    """All events from now on, as they are published."""
    client: Any = store.connection.client
    listener, seen = client.pubsub(), list[Seen]()
    await listener.subscribe(store.connection.keys.key(CHANNEL))
    assert await listener.get_message(timeout=10) is not None  # it is subscribed

    async def listen() -> None:
        while True:
            if message := await listener.get_message(ignore_subscribe_messages=True, timeout=1):
                seen.extend(
                    Seen(row.task, row.seq, row.act, row.before, row.after, row.at, row.fence)
                    for row in rows_of(message["data"])
                )

    listening = asyncio.create_task(listen())
    try:
        yield seen
    finally:
        last = int(await client.hget(store.connection.keys.meta, "events"))
        with contextlib.suppress(AssertionError):
            await wait_until(lambda: len(seen) >= last, 10)
        listening.cancel()
        await asyncio.wait([listening])
        await listener.aclose()


async def work(store: Store, tasks: int) -> None:
    """Until all of them are done."""
    await store.workers.register("w", capacity=2 * AT_ONCE)
    done = 0
    while done < tasks:
        count = min(AT_ONCE, tasks - done)
        await store.submit(*[NewTask(task_type="echo") for _ in range(count)])
        while claimed := (await store.claim("w", AT_ONCE)).tasks:
            await store.complete("w", *[Completed(task.task_id, task.fence, "ok") for task in claimed])
            done += len(claimed)


async def compare(store: Store, database: str, seen: list[Seen], patience: float = 60) -> dict[str, int]:
    """The history with the stream, when it has caught up."""

    async def is_up_to_date() -> bool:
        lag = await store.outbox.lag()
        return lag is not None and lag.events == 0

    await wait_until(is_up_to_date, patience)
    history = History(open_database(database), "default")
    try:
        rows = await history.database.read(
            "SELECT task_id, seq, act, before, after, at, fence FROM events ORDER BY id"
        )
        recorded = [Seen(*row) for row in rows]
        ((lost, missing),) = await history.database.read("SELECT lost, missing FROM generations")
        ((tasks, completed),) = await history.database.read(
            "SELECT COUNT(*), SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) FROM tasks"
        )
        ((attempts,),) = await history.database.read(
            "SELECT COUNT(*) FROM attempts WHERE ended_by = 'complete'"
        )
    finally:
        await history.close()
    return {
        "events": len(seen),
        "gaps": len(set(seen) - set(recorded)),
        "duplicates": len(recorded) - len(set(recorded)),
        "out_of_order": int(recorded != seen),
        "lost": lost,
        "missing": missing,
        "tasks": tasks,
        "completed": completed,
        "attempts": attempts,
    }


def faultless(tasks: int) -> dict[str, int]:
    """What `compare` returns when each task was submitted, claimed and completed once."""
    nothing = dict.fromkeys(("gaps", "duplicates", "out_of_order", "lost", "missing"), 0)
    return {"events": 3 * tasks, "tasks": tasks, "completed": tasks, "attempts": tasks, **nothing}
