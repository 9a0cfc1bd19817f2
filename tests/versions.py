"""The previous release beside this version: real processes of both, run by the same interpreter."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
#: The commit that stands for the previous release until one is tagged (`v1.2.3`).
PREVIOUS = "e372b091bc9b6809b030d636593b81596747946c"


@dataclass(frozen=True)
class Version:
    """The code of one version; `label` is what its handlers find in the environment."""

    label: str
    source: Path

    def start(self, folder: Path, *arguments: str) -> "Running":
        number = len(list(folder.glob(f"{self.label}-*.log")))
        log = folder / f"{self.label}-{number}.log"
        env = {
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(self.source),
            "VERSION": self.label,
        }
        command = [sys.executable, "-m", "fairlead.cli", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True
            )
        return Running(process, log)


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[bytes]
    log: Path

    async def said(self, pattern: str) -> str:
        """The first group of what it has written."""

        def found() -> re.Match[str] | None:
            return re.search(pattern, self.log.read_text())

        def is_there() -> bool:
            assert self.process.poll() is None or found(), self.log.read_text()
            return found() is not None

        await wait_until(is_there, 40, f"{pattern} in {self.log.read_text()}")
        match = found()
        assert match
        return match[1] if match.groups() else match[0]

    async def end(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return await self.exit_code()

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, 40)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def previous_release(folder: Path) -> Version:
    """Its source, taken from the history of this repository; skips where that cannot be had."""
    commit = _git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").decode().strip() or PREVIOUS
    archive = _git("archive", commit, "src")
    if not archive and _git("rev-parse", "--is-shallow-repository").strip() == b"true":
        _git("fetch", "--quiet", "--depth", "1", "origin", commit)
        archive = _git("archive", commit, "src")
    if not archive:
        words = f"the previous release ({commit[:7]}) is not in the git history here: fetch all of it"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return Version("old", folder / "src")


def _git(*arguments: str) -> bytes:
    """What it printed; nothing if it failed."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)
    return b"" if done.returncode else done.stdout


def this_version() -> Version:
    return Version("new", ROOT / "src")
