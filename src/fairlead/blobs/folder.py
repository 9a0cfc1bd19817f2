"""Named files in a folder, written whole or not at all. The folder may be shared by several machines."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

PAGE = 1000  # entries
ATTEMPTS = 5


class Entry(NamedTuple):
    name: str
    size: int
    changed_at: int  # ms


class Objects(Protocol):
    """What blobs are kept in. Names are paths; every method blocks, and raises OSError."""

    scratch: Path  # a folder on this machine for what is not complete yet

    def pages(self, prefix: str) -> Iterator[list[Entry]]:
        """All whose names begin with these whole parts of a path; none if there are none."""

    def add(self, name: str, file: Path) -> None:
        """Takes the file, which may be moved."""

    def mark(self, name: str) -> None:
        """Makes an empty one, or changes its time to now."""

    def delete(self, names: Iterable[str]) -> None:
        """Those that are there."""

    def read(self, name: str, start: int, size: int) -> bytes: ...

    def path(self, name: str) -> Path | None:
        """Where it can be read as a file, if it can."""


class Folder:
    def __init__(self, root: Path) -> None:
        self._root = root
        self.scratch = root / "uploads"

    def pages(self, prefix: str) -> Iterator[list[Entry]]:
        entries = self._below(prefix)
        while page := [*islice(entries, PAGE)]:
            yield page

    def _below(self, prefix: str) -> Iterator[Entry]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._root / prefix) as found:
            for one in found:
                name = f"{prefix}/{one.name}"
                if one.is_dir(follow_symlinks=False):
                    yield from self._below(name)
                    continue
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    status = one.stat(follow_symlinks=False)
                    yield Entry(name, status.st_size, status.st_mtime_ns // 1_000_000)

    def add(self, name: str, file: Path) -> None:
        """It is on the disk, with its name, when this returns."""
        with file.open("rb") as content:
            os.fsync(content.fileno())
        self._place(name, file.replace)

    def mark(self, name: str) -> None:
        self._place(name, Path.touch)

    def _place(self, name: str, place: Callable[[Path], object]) -> None:
        path = self._root / name
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for attempt in range(1, ATTEMPTS + 1):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                place(path)
                break
            except FileNotFoundError:  # its folder, which was empty, has just been deleted
                if attempt == ATTEMPTS:
                    raise
        for folder in path.parents[: len(path.relative_to(self._root).parts)]:  # any of them may be new
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def delete(self, names: Iterable[str]) -> None:
        for path in (self._root / name for name in names):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it is not empty
                path.parent.rmdir()

    def read(self, name: str, start: int, size: int) -> bytes:
        with (self._root / name).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def path(self, name: str) -> Path | None:
        return self._root / name
