"""Every signal that stops a process of Fairlead: once and twice, to one process and to its whole group,
whatever is under way. It stops in time, loses nothing, charges nobody, and leaves no process behind.

Every pair of a signal, its receivers and how often it is sent occurs in some case, and every signal, once
and twice, with every command.
The cases of a test run side by side, each with its own processes and namespace.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import pytest

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.worker.signals import AT_ONCE_SECONDS
from tests.pipeline.servers import Request, raw_service
from tests.servers import Server
from tests.waiting import wait_until
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[2]
APP = "tests.apps.stopping:fl"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE = 1.0
LONG_GRACE = 600.0  # nobody waits for its end: the second signal cuts it short
STOP_SECONDS = 2.0  # after the grace, or after the second signal
BUSY_SECONDS = 10.0  # that a machine on which many processes start may be late

#: Where the work is: the command, and the type of the task that runs in it.
WORK: dict[str, tuple[tuple[str, ...], str]] = {
    "worker, loop": (("worker", APP), "loop"),
    "worker, blocked loop": (("worker", APP), "blocked"),
    "worker, thread": (("worker", APP), "thread"),
    "worker, process": (("worker", APP), "process"),
    "server": (("server", "--port", "0"), "service:slow"),
    "server, two processes": (("server", "--port", "0", "--processes", "2"), "service:slow"),
    "up": (("up", "--port", "0"), "service:slow"),
    "up, blocked loop": (("up", "--port", "0", "--app", APP), "blocked"),
    "up, process": (("up", "--port", "0", "--app", APP), "process"),
}


@dataclass(frozen=True)
class Stop:
    by: signal.Signals
    group: bool  # or to the one process that was started
    twice: bool


def stops(work: str) -> list[Stop]:
    """Once; some of the work also twice. Signals come in turn, to one process or to the group."""
    turn = list(WORK).index(work)
    once = Stop(SIGNALS[turn % 3], group=turn % 2 == 0, twice=False)
    twice = Stop(SIGNALS[(turn // 2 + 1) % 3], group=turn % 4 == 2, twice=True)
    return [once, twice] if turn % 2 == 0 else [once]


@dataclass(frozen=True)
class Case:
    """A command in its own session, with a task that never ends, and one that waits behind it."""

    store: Store
    folder: Path
    process: WarmProcess
    tasks: tuple[str, str]

    def log_text(self) -> str:
        return (self.folder / "log").read_text()

    def session(self) -> list[int]:
        """All processes that the command has started, and their children."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):  # it has just ended
                pid, facts = int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()
                if int(facts[3]) == self.process.pid and facts[0] != "Z":
                    found.append(pid)
        return found


async def hang(_: Request, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def begin(
    store: Store, server: Server, folder: Path, work: str, grace: float, service: str, cases: list[Case]
) -> Case:
    """Its processes are ended with those of all `cases`, whatever happens."""
    command, task_type = WORK[work]
    settings = f'[services.slow]\nurl = "{service}"\nlimit = 1\ntimeout_seconds = 600\n'
    (folder / "fairlead.toml").write_text(settings + "[worker]\ncapacity = 1\nreserve = 0\n")
    where = ("--engine", server.url, "--namespace", store.connection.keys.namespace, "--grace", str(grace))
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        process = WarmProcess((*command, *where), env, folder, log, log)
    parameters = {} if task_type.startswith("service:") else {"path": str(folder / "began")}
    tasks = [NewTask(task_type=task_type, parameters=parameters, limits={"one": 1}) for _ in range(2)]
    case = Case(store, folder, process, (tasks[0].task_id, tasks[1].task_id))
    cases.append(case)
    await wait_until(lambda: is_up(case), 60, f"{work} has started: {case.log_text()}")
    for task in tasks:
        await store.submit_one(task)
    return case


async def is_up(case: Case) -> bool:
    assert case.process.returncode is None, case.log_text()
    return len((await case.store.stats()).workers) > 0


async def stop(case: Case, how: Stop) -> float:
    """In time, with nothing lost and no task charged; returns the seconds that it took."""
    send: Callable[[int, int], None] = os.killpg if how.group else os.kill
    send(case.process.pid, how.by)
    if how.twice:
        await asyncio.sleep(AT_ONCE_SECONDS + 0.2)  # sooner it would count as the same signal
        assert case.process.returncode is None, "it had all the time that it likes"
        send(case.process.pid, how.by)
    began = time.monotonic()
    async with asyncio.timeout(60):
        code = await keep_signalling(case, how, send) if how.twice else await case.process.wait()
    took, bound = time.monotonic() - began, STOP_SECONDS + (0 if how.twice else GRACE)
    assert code == 0, case.log_text()
    assert took < bound + BUSY_SECONDS, case.log_text()
    await wait_until(lambda: not case.session(), because=f"no process is left: {case.session()}")
    for task_id in case.tasks:
        task = await case.store.get(task_id)
        assert task.status is State.QUEUED, case.log_text()
        assert (task.attempt, task.retry_count, task.crash_count, task.loss_count) == (1, 0, 0, 0)
    stats = await case.store.stats()
    assert (stats.workers, (await case.store.limits.get("one")).active) == ([], 0)
    return took


async def keep_signalling(case: Case, how: Stop, send: Callable[[int, int], None]) -> int:
    """On a busy machine the first signal may arrive late, and the second count as the same one."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(AT_ONCE_SECONDS + 0.2):
                return await case.process.wait()
        with suppress(ProcessLookupError):  # it has just ended
            send(case.process.pid, how.by)


def test_every_two_ways_to_stop_come_together() -> None:
    every = [(how.by, how.group, how.twice, WORK[work][0][0]) for work in WORK for how in stops(work)]
    values = (SIGNALS, (False, True), (False, True), {command[0] for command, _ in WORK.values()})
    for one, other in combinations(range(4), 2):
        assert {(case[one], case[other]) for case in every} == set(product(values[one], values[other]))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("work", WORK)
async def test_it_stops_in_time_and_loses_nothing(
    open_store: Callable[..., Store],
    server: Server,
    tmp_path: Path,
    work: str,
    record_property: Callable[[str, object], None],
) -> None:
    wanted = [(open_store(), how) for how in stops(work)]
    cases: list[Case] = []

    async def play(store: Store, how: Stop) -> None:
        folder = tmp_path / f"{how.by.name}-{2 if how.twice else 1}"
        folder.mkdir()
        await store.open()
        await store.limits.set("one", Slots(limit=1))
        async with raw_service(hang) as service:
            grace = LONG_GRACE if how.twice else GRACE
            case = await begin(store, server, folder, work, grace, service.url, cases)
            await wait_until(lambda: service.requests or (folder / "began").exists(), 60, case.log_text())
            record_property(f"{folder.name}_seconds", round(await stop(case, how), 3))

    try:
        await asyncio.gather(*(play(store, how) for store, how in wanted))
    finally:
        for case in cases:
            for pid in case.session():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await case.process.wait()
