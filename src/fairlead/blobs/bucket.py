"""The same in an object store, through the package `obstore`, which is installed as an extra."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.blobs.folder import PAGE, Entry
from fairlead.errors import InvalidSettings

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import from_url
except ModuleNotFoundError:
    raise InvalidSettings(
        "blobs.url names an object store: install the package for it, `pip install 'fairlead[s3]'`"
    ) from None

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

PATIENCE: "ClientConfig" = {"connect_timeout": "3s", "timeout": "60s"}  # the second of a whole request
RETRIES: "RetryConfig" = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}


class Bucket:
    def __init__(self, store: "ObjectStore", scratch: Path) -> None:
        self._store = store
        self.scratch = scratch

    @classmethod
    def at(cls, url: str, scratch: Path) -> "Bucket":
        with _as_os_errors():
            return cls(from_url(url, client_options=_client_options(), retry_config=RETRIES), scratch)

    def pages(self, prefix: str) -> Iterator[list[Entry]]:
        with _as_os_errors(_no_bucket):
            for page in obstore.list(self._store, prefix=prefix, chunk_size=PAGE):
                yield [
                    Entry(one["path"], one["size"], round(one["last_modified"].timestamp() * 1000))
                    for one in page
                ]

    def add(self, name: str, file: Path) -> None:
        with _as_os_errors(_no_bucket):
            obstore.put(self._store, name, file)

    def mark(self, name: str) -> None:
        with _as_os_errors(_no_bucket):
            obstore.put(self._store, name, b"")

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError), _as_os_errors():
                obstore.delete(self._store, name)

    def read(self, name: str, start: int, size: int) -> bytes:
        with _as_os_errors():
            return bytes(obstore.get_range(self._store, name, start=start, length=size))

    def path(self, name: str) -> Path | None:
        return None


def _client_options() -> "ClientConfig":
    """Options given here take the place of all those in the environment, also of this one."""
    allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1", "yes", "on")
    return {**PATIENCE, "allow_http": allow_http}


def _no_bucket(problem: FileNotFoundError) -> OSError:
    return OSError("there is no such bucket")


@contextlib.contextmanager
def _as_os_errors(missing: Callable[[FileNotFoundError], OSError] = lambda it: it) -> Iterator[None]:
    """`missing`: what it means that something is not there."""
    try:
        yield
    except FileNotFoundError as problem:
        raise missing(problem) from None
    except BaseError as problem:
        raise OSError(str(problem).partition("\n")[0]) from problem
