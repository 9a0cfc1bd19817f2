"""The wheel, and environments with nothing else in them.

A run of the tests makes each once, in whichever process needs it first.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.warm_shell import warm_fairlead

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"


def uv(*arguments: object) -> None:
    environment = os.environ | {"UV_SYSTEM_CERTS": "1"}
    done = subprocess.run([UV, *map(str, arguments)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Wheel:
    def __init__(self, folder: Path) -> None:
        """`folder` is shared by all processes of a run."""
        self._folder = folder

    @property
    def dist(self) -> Path:
        """The folder of the sdist, and of the wheel that was built from the sdist alone."""
        return self._once("dist", lambda folder: uv("build", "--quiet", "--out-dir", folder, ROOT))

    @property
    def file(self) -> Path:
        (file,) = self.dist.glob("*.whl")
        return file

    def environment(self, *packages: str) -> Path:
        """A fresh one with the wheel and these packages."""

        def make(folder: Path) -> None:
            uv("venv", "--quiet", "--python", sys.executable, folder)
            into = ("--python", folder / "bin/python", "-c", ROOT / "constraints.txt")
            uv("pip", "install", "--quiet", *into, self.file, *packages)

        return self._once("-".join(["env", *sorted(packages)]), make)

    def path(self, *packages: str) -> str:
        """The PATH of a user who has activated that environment."""
        folder = self.environment(*packages) / "bin"
        # where many commands are run, `fairlead` must not import everything each time
        programs = [folder] if packages else [warm_fairlead(folder / "python"), folder]
        return ":".join(map(str, [*programs, "/usr/bin", "/bin"]))

    def _once(self, name: str, make: Callable[[Path], None]) -> Path:
        self._folder.mkdir(exist_ok=True)
        folder, complete = self._folder / name, self._folder / f"{name}.complete"
        with (self._folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that was interrupted
                make(folder)
                complete.touch()
        return folder
