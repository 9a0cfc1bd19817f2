"""`fairlead server` as an operator runs it: real processes that end with the test."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlead.settings import Settings
from fairlead.settings_file import load_settings
from tests.commands import FAIRLEAD


@dataclass(frozen=True)
class Gateway:
    process: subprocess.Popen[str]
    url: str
    engine: str
    namespace: str
    settings: Settings
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def said(self) -> str:
        return self.log.read_text()

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def serving(
    engine: str,
    namespace: str,
    folder: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    command: str = "server",
    port: int = 0,
) -> Iterator[Gateway]:
    """Until the block ends; then it must end itself, with 0 and without a traceback."""
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **(env or {})}
    log = folder / f"server-{len(list(folder.glob('server-*.log')))}.log"
    where = ("--engine", engine) if engine else ("--data", str(folder))
    with log.open("w") as err:
        process = subprocess.Popen(
            [FAIRLEAD, command, *where, "--namespace", namespace, "--port", str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield Gateway(process, address(process, log), engine, namespace, load_settings(None, env), log)
        process.terminate()
        assert process.wait(timeout=30) == 0, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def address(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout
    line = process.stdout.readline()
    said = re.match(r"Fairlead listens at (http://\S+)", line)
    assert said, line + log.read_text()
    return said[1]
