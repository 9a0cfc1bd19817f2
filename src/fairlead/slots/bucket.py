"""Objects in an object store with conditional writes: Amazon S3, Google Cloud Storage, Azure and the like."""

import asyncio
import contextlib
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.errors import InvalidSettings
from fairlead.slots.objects import MOST_BYTES, Found

try:
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError

    from fairlead.buckets import as_os_errors, no_bucket, open_bucket
except ModuleNotFoundError:
    raise InvalidSettings(
        "The URL of the slots names an object store: install a package, `pip install 'fairlead[s3]'`"
    ) from None

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REQUEST_TIMEOUT = "5s"  # a lease cannot wait as long as an upload
PROBES = ".probe"
UNCONDITIONAL = (
    "The object store at {url} ignores conditions of writes (If-None-Match, If-Match), so two holders could "
    "get the same slot: use one that heeds them, a shared folder (file:///...), or the limits of Fairlead."
)


class Bucket:
    def __init__(self, store: "ObjectStore", url: str) -> None:
        self._store = store
        self._url = url
        self._probing = asyncio.Lock()
        self._is_probed = False

    @classmethod
    def at(cls, url: str) -> "Bucket":
        try:
            return cls(open_bucket(url, REQUEST_TIMEOUT), url)
        except (OSError, ValueError) as problem:
            raise InvalidSettings(f"The URL of the slots, {url}, cannot be used: {problem}") from None

    async def read(self, name: str) -> Found | None:
        with as_os_errors():
            try:
                answer = await obstore.get_async(self._store, name)
            except FileNotFoundError:
                return None
            size = min(answer.meta["size"], MOST_BYTES + 1)
            content = b"" if size == 0 else bytes(await answer.bytes_async())[:size]
        return Found(content, answer.meta["e_tag"] or "")

    async def write(self, name: str, content: bytes, version: str | None) -> bool:
        await self._probe()
        return await self._write(name, content, version)

    async def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), as_os_errors():
            await obstore.delete_async(self._store, name)

    async def names(self, prefix: str) -> list[str]:
        with as_os_errors(no_bucket):
            found = await obstore.list_with_delimiter_async(self._store, prefix)
        paths = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    async def _write(self, name: str, content: bytes, version: str | None) -> bool:
        with as_os_errors(no_bucket), _unconditional(self._url):
            try:
                await obstore.put_async(
                    self._store, name, content, mode="create" if version is None else {"e_tag": version}
                )
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    async def _probe(self) -> None:
        """Some servers accept the headers of conditional writes and do not look at them."""
        async with self._probing:
            if self._is_probed:
                return
            name = f"{PROBES}/{uuid.uuid4()}"
            if not await self._write(name, b"1", None):
                raise OSError("a new object is there already")
            try:
                if await self._write(name, b"2", None):
                    raise InvalidSettings(UNCONDITIONAL.format(url=self._url))
                first = await self.read(name)
                if first is None or not await self._write(name, b"3", first.version):
                    raise OSError("an object has another version than was just read")
                if await self._write(name, b"4", first.version):
                    raise InvalidSettings(UNCONDITIONAL.format(url=self._url))
            finally:
                with contextlib.suppress(OSError):  # a key may write and not delete
                    await self.delete(name)
            self._is_probed = True


@contextlib.contextmanager
def _unconditional(url: str) -> Iterator[None]:
    try:
        yield
    except NotSupportedError:
        raise InvalidSettings(UNCONDITIONAL.format(url=url)) from None
    except BaseError as problem:
        # two conditional requests at once: Amazon S3 answers one of them so
        if "ConditionalRequestConflict" not in str(problem):
            raise
        raise OSError("another request changed the same object at the same time") from None
