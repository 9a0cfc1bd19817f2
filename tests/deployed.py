"""What the files in `deploy/` start, on this machine: the commands and variables of units and containers."""

import contextlib
import signal
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.model.task import NewTask
from fairlead.store.doctor.doctor import examine
from tests.commands import ended
from tests.connections import patient_store
from tests.recording import task_rows
from tests.servers import free_port
from tests.waiting import wait_until

DEPLOY = Path(__file__).parents[1] / "deploy"
STATE = "/var/lib/fairlead"
APP = """
from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def echo(text: str) -> str:
    return text
"""

Program = tuple[Sequence[str], Mapping[str, str]]  # the command and its own variables


@dataclass(frozen=True)
class Machine:
    """Where programs find what an operator has prepared for them."""

    engine: str
    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def database(self) -> str:
        return f"sqlite:///{self.folder / 'history.sqlite3'}"

    async def start(self, command: Sequence[str], own: Mapping[str, str]) -> Process:
        here = {"8000": str(self.port), "0.0.0.0": "127.0.0.1"}
        program, *options = [here.get(word, word) for word in command]
        env = {
            **{"HOME": str(self.folder), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
            **{"REDIS_URL": self.engine, "DATABASE_URL": self.database},
            **{name: value.replace(STATE, str(self.folder)) for name, value in own.items()},
        }
        words = (Path(program).name, *options)
        return await create_subprocess_exec(*words, cwd=self.folder, env=env, stdout=PIPE, stderr=PIPE)


async def start_and_work(machine: Machine, create_key: Sequence[str], programs: Sequence[Program]) -> None:
    """Programs of all kinds run a task and record it; then each ends as it should."""
    (machine.folder / "app.py").write_text(APP)
    key = (await ended(await machine.start(create_key, {}))).out.split()[-1]
    assert key.startswith("flk_")
    processes = [await machine.start(*program) for program in programs]
    try:
        await _is_served(machine)
        await _is_done_and_recorded(machine)
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [(await ended(process)).code for process in processes] == [0] * len(programs)
    finally:  # a server would start its processes again for ever
        for process in processes:
            if process.returncode is None:
                process.kill()


async def _is_served(machine: Machine) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{machine.port}", trust_env=False) as client:

        async def is_ready() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return (await client.get("/readyz")).status_code == 200
            return False

        await wait_until(is_ready)
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/api/v1/workers")).status_code == 401


async def _is_done_and_recorded(machine: Machine) -> None:
    async with patient_store(machine.engine) as store:
        task = await store.submit_one(NewTask(task_type="echo", parameters={"text": "x"}))

        async def is_done() -> bool:
            return (await store.get(task.task_id)).status == "completed"

        await wait_until(is_done)
        assert await examine(store.connection) == []
    history = History(open_database(machine.database), "default")

    async def is_recorded() -> bool:
        return [row.status for row in await task_rows(history)] == ["completed"]

    await wait_until(is_recorded)
    await history.close()
