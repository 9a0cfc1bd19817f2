"""Files on this machine: what is being uploaded, and blobs that were fetched for a program."""

import asyncio
import contextlib
import hashlib
import mimetypes
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from fairlead.clock import now_ms
from fairlead.errors import BlobStoreUnavailable, InvalidInput
from fairlead.model.blob import LocalFile

PIECE = 256 * 1024  # bytes that are read, hashed and written at once
STALE_MS = 3_600_000  # no upload takes so long: its process is gone
PREFIX = "fairlead-"


class PartialFile:
    """A file that grows, and the SHA-256 of what it holds. It blocks."""

    def __init__(self, folder: Path | None) -> None:
        """In the folder for temporary files if none is given."""
        if folder:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
        self.path, self.size = Path(name), 0
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._hash = hashlib.sha256()

    def write(self, piece: bytes) -> None:
        self._hash.update(piece)
        self.size += len(piece)
        view = memoryview(piece)
        while view:
            view = view[self._file.write(view) :]

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """What killed processes have left of their uploads."""
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has just been completed
                if path.stat().st_mtime_ns // 1_000_000 < now_ms() - STALE_MS:
                    path.unlink()


async def pieces_of(source: Path | bytes) -> AsyncIterator[bytes]:
    """Raises InvalidInput if it cannot be read."""
    if isinstance(source, bytes):
        for start in range(0, len(source), PIECE):
            yield source[start : start + PIECE]
        return
    try:
        with await asyncio.to_thread(source.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
    except OSError as problem:
        raise InvalidInput("file", f"cannot read {source}: {problem.strerror}") from None


def size_of(source: Path | bytes) -> int:
    if isinstance(source, bytes):
        return len(source)
    try:
        return source.stat().st_size
    except OSError as problem:
        raise InvalidInput("file", f"cannot read {source}: {problem.strerror}") from None


def type_of(name: str | None) -> str | None:
    return mimetypes.guess_type(name)[0] if name else None


async def downloaded(content: AsyncIterator[bytes], digest: str) -> LocalFile:
    """The whole content, checked, as a temporary file. Raises OSError if there is no room for it."""
    partial = await asyncio.to_thread(PartialFile, None)
    try:
        async for piece in content:
            await asyncio.to_thread(partial.write, piece)
        partial.close()
        if partial.digest != digest:
            raise BlobStoreUnavailable("The content of the blob arrived damaged: fetch it again.")
    except BaseException:
        partial.discard()
        raise
    return LocalFile(partial.path, is_temporary=True)
