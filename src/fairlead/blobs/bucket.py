"""The same in an object store, through the package `obstore`, which is installed as an extra."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.blobs.folder import PAGE, Entry
from fairlead.errors import InvalidSettings

try:
    import obstore

    from fairlead.buckets import as_os_errors, no_bucket, open_bucket
except ModuleNotFoundError:
    raise InvalidSettings(
        "blobs.url names an object store: install the package for it, `pip install 'fairlead[s3]'`"
    ) from None

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class Bucket:
    def __init__(self, store: "ObjectStore", scratch: Path) -> None:
        self._store = store
        self.scratch = scratch

    @classmethod
    def at(cls, url: str, scratch: Path) -> "Bucket":
        return cls(open_bucket(url), scratch)

    def pages(self, prefix: str) -> Iterator[list[Entry]]:
        with as_os_errors(no_bucket):
            for page in obstore.list(self._store, prefix=prefix, chunk_size=PAGE):
                yield [
                    Entry(one["path"], one["size"], round(one["last_modified"].timestamp() * 1000))
                    for one in page
                ]

    def add(self, name: str, file: Path) -> None:
        with as_os_errors(no_bucket):
            obstore.put(self._store, name, file)

    def mark(self, name: str) -> None:
        with as_os_errors(no_bucket):
            obstore.put(self._store, name, b"")

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError), as_os_errors():
                obstore.delete(self._store, name)

    def read(self, name: str, start: int, size: int) -> bytes:
        with as_os_errors():
            return bytes(obstore.get_range(self._store, name, start=start, length=size))

    def path(self, name: str) -> Path | None:
        return None
