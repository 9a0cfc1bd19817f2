"""A private server that can be killed and started again any number of times."""

import contextlib
import subprocess
from pathlib import Path

import redis

from fairlead.store.engine.process import find_server
from tests.waiting import wait_until


class KillableServer:
    options: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/s"
        self._command = [
            *(str(find_server({})), "--port", "0", "--unixsocket", f"{folder}/s", "--save", ""),
            *self.options,
            *("--dir", str(folder), "--logfile", str(folder / "log")),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Until it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await wait_until(self._answers, 40, "the server answers")

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError, OSError), redis.Redis.from_url(self.url) as client:
            return bool(client.ping())
        return False
