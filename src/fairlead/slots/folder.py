"""Objects as files in a folder that several processes share. Its file system must have locks (`flock`)."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.slots.objects import MOST_BYTES, Found

LOCK = ".lock"


class Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    async def read(self, name: str) -> Found | None:
        return await asyncio.to_thread(_read, self._root / name)

    async def write(self, name: str, content: bytes, version: str | None) -> bool:
        return await asyncio.to_thread(self._write, self._root / name, content, version)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread((self._root / name).unlink, missing_ok=True)

    async def names(self, prefix: str) -> list[str]:
        return await asyncio.to_thread(_names, self._root / prefix)

    def _write(self, path: Path, content: bytes, version: str | None) -> bool:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path.parent / LOCK):
            found = _read(path)
            if (found.version if found else None) != version:
                return False
            new = path.with_name(f".{path.name}.new")
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a crash of the machine could leave an empty file
            new.replace(path)
        return True


def _read(path: Path) -> Found | None:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    return Found(content, hashlib.sha256(content).hexdigest())


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        return [one.name for one in found if not one.name.startswith(".")]
    return []


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Freed by the system if its holder is killed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
