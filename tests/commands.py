"""The command as a user runs it: a real process, on the server of a test or on its own folder."""

import asyncio
import os
import pty
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from fairlead.store.store import Store
from tests.warm import ENVIRONMENT, WarmProcess

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """Where commands run: an empty home, and their common options (the server and the namespace)."""

    home: Path
    where: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def beside(cls, store: Store, url: str, home: Path) -> "Shell":
        """On the namespace of a test's own store."""
        return cls(home, ("--engine", url, "--namespace", store.connection.keys.namespace))

    async def start(self, *arguments: str, stdin: int = DEVNULL, out: int = PIPE, err: int = PIPE) -> Process:
        return await asyncio.create_subprocess_exec(
            *(FAIRLEAD, *arguments, *self.where),
            stdin=stdin,
            stdout=out,
            stderr=err,
            cwd=self.home,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # our parent may ignore it
            env=self.environment,
        )

    @property
    def environment(self) -> dict[str, str]:
        usual = {"HOME": str(self.home), "TERM": "xterm-256color", "COLUMNS": "200"}
        return {**usual, **ENVIRONMENT, **self.env}

    async def run(self, *arguments: str, given: str = "") -> Ended:
        """To its end. It does not start from nothing, which takes longer than most commands."""
        with TemporaryFile() as stdin, TemporaryFile() as out, TemporaryFile() as err:
            stdin.write(given.encode())
            stdin.seek(0)
            words = [*arguments, *self.where]
            process = WarmProcess(words, self.environment, self.home, out, err, stdin=stdin)
            try:
                code = await process.wait()
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return Ended(code, out.read().decode(), err.read().decode())

    async def on_terminal(self, *arguments: str, typed: str = "") -> Ended:
        """Runs with all three streams on one terminal; `typed` is the input of the user."""
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "r+b", buffering=0) as terminal:
            words = [*arguments, *self.where]
            process = WarmProcess(words, self.environment, self.home, terminal, terminal, stdin=terminal)
        os.write(ours, typed.encode())
        shown = await asyncio.to_thread(read_all, ours)
        return Ended(await process.wait(), shown, "")


async def ended(process: Process, given: str | None = None) -> Ended:
    out, err = await process.communicate(None if given is None else given.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def read_all(terminal: int) -> str:
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # on Linux: the other side has closed it
        pass
    finally:
        os.close(terminal)
    return shown.decode()
