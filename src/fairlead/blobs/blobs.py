"""The blobs of a namespace, as gateways and programs that use the engine itself have them."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairlead.blobs.folder import Entry, Folder, Objects
from fairlead.blobs.local import PIECE, PartialFile, downloaded, pieces_of, remove_stale, size_of, type_of
from fairlead.blobs.shelf import Claim, Copy, Need, Owner, Shelf
from fairlead.blobs.usage import Usage, in_blocks
from fairlead.clock import monotonic
from fairlead.errors import (
    BlobStoreFull,
    BlobStoreUnavailable,
    BlobTooLarge,
    FairleadError,
    InvalidInput,
    UnknownBlob,
)
from fairlead.log.events import LimitedLog
from fairlead.model.blob import BlobRef, LocalFile, StoredBlob, digest_of, digests_in
from fairlead.model.task import Task
from fairlead.settings import BlobSettings

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WALK_SECONDS = 60.0  # between two looks at everything

P = ParamSpec("P")
R = TypeVar("R")
Needs = Callable[[Collection[Owner]], Awaitable[Mapping[Owner, Need]]]

log = LimitedLog("fairlead.blobs", seconds=60)


class Blobs:
    """`folder` is where they are kept if the settings name no other place. It is opened when it is used."""

    def __init__(
        self, settings: BlobSettings, namespace: str, folder: Path, epoch: Callable[[], str] = lambda: ""
    ) -> None:
        self._settings = settings
        self._namespace = namespace
        self._folder = folder
        self._epoch = epoch
        self._shelf: Shelf | None = None
        self._usage = Usage(settings.max_total_bytes, self._measure)
        self._walk: Iterator[list[Entry]] | None = None
        self._walk_at = 0.0

    @property
    def shelf(self) -> Shelf:
        """Raises InvalidSettings if the package for it is not installed."""
        if self._shelf is None:
            keep_ms = round(self._settings.keep_seconds * 1000)
            self._shelf = Shelf(self._objects(), self._namespace, keep_ms)
        return self._shelf

    def _objects(self) -> Objects:
        url = self._settings.url or ""
        if url.startswith("s3://"):
            from fairlead.blobs.bucket import Bucket  # an extra

            return Bucket.at(url, self._folder / "uploads")
        return Folder(Path(url.removeprefix("file://")) if url else self._folder)

    # What programs do

    async def put(
        self,
        source: Path | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
        tenant: str | None = None,
        task: Task | None = None,
    ) -> BlobRef:
        """Uploads a file. `task`: it is a result of this task, of whose tenant it is."""
        size = await asyncio.to_thread(size_of, source)
        tenant = task.tenant if task else tenant
        stored = await self.receive(pieces_of(source), tenant=tenant, size=size)
        if task:
            await self.keep_for(task, stored.blob)
        return stored.ref(name, content_type or type_of(name))

    async def fetch(self, ref: BlobRef, *, tenant: str | None = None, task: Task | None = None) -> LocalFile:
        """As a file that can be read here. Raises UnknownBlob."""
        copy = await self.find(task.tenant if task else tenant, ref.digest)
        if path := self.shelf.objects.path(copy.name):
            return LocalFile(path, is_temporary=False)
        return await downloaded(self.read(copy), ref.digest)

    # What a gateway does

    async def receive(
        self,
        content: AsyncIterator[bytes],
        *,
        tenant: str | None,
        size: int | None = None,
        digest: str | None = None,
    ) -> StoredBlob:
        """Keeps the content, whose size and SHA-256 are checked if they are given."""
        most = self._settings.max_bytes
        if size is not None and size > most:
            raise self._too_large()
        shelf = self.shelf
        async with self._usage.room_for(most if size is None else size):
            partial = await self._do(PartialFile, shelf.objects.scratch)
            try:
                async for piece in content:
                    if partial.size + len(piece) > most:
                        raise self._too_large()
                    await self._do(partial.write, piece)
                if digest not in (None, partial.digest):
                    raise InvalidInput(
                        "sha256", f"the content has the SHA-256 {partial.digest}", "digest_mismatch"
                    )
                partial.close()
                stored = await self._do(shelf.keep, tenant, partial.digest, partial.size, partial.path)
            finally:
                partial.discard()
            if stored.is_new:
                self._usage.add(stored.size)
            return stored

    async def find(self, tenant: str | None, digest: str) -> Copy:
        return await self._do(self.shelf.find, tenant, digest)

    async def read(self, copy: Copy) -> AsyncIterator[bytes]:
        """Piece by piece, so that nothing stays open for a reader that is slow."""
        for start in range(0, copy.size, PIECE):
            yield await self._do(self.shelf.objects.read, copy.name, start, min(PIECE, copy.size - start))

    async def keep_for(self, task: Task, blob: str) -> None:
        """A result of a step is kept until its job has ended."""
        if task.job_id:
            owner, digest = Owner("job", task.job_id), digest_of(blob)
            await self._do(self.shelf.claim, task.tenant, digest, owner, self._epoch())

    async def claim(self, owner: Owner, tenant: str | None, field: str, text: str) -> None:
        """Before a task or a job is submitted: its blobs are kept until it has ended.

        `text` is the JSON of the field, without spaces. Raises InvalidInput if one of them is not there.
        """
        for digest in digests_in(text):
            try:
                await self._do(self.shelf.claim, tenant, digest, owner, self._epoch())
            except UnknownBlob:
                raise InvalidInput(
                    field,
                    f"there is no blob sha256:{digest}: upload the file first, or again if it has expired; "
                    "all processes that use the engine itself need the same blobs.url",
                    UnknownBlob.code,
                ) from None

    # What the upkeep does

    async def tidy(self, needs: Needs) -> int:
        """Looks at a part of everything, from end to end and over again; how much it deleted."""
        try:
            return await self._tidy(needs)
        except BlobStoreUnavailable:  # which is logged
            self._end_walk()
            return 0
        except BaseException:
            self._end_walk()
            raise

    async def _tidy(self, needs: Needs) -> int:
        shelf = self.shelf
        if self._walk is None:
            if monotonic() < self._walk_at:
                return 0
            await self._do(remove_stale, shelf.objects.scratch)
            self._walk = shelf.entries()
        page = await self._do(lambda walk: next(walk, None), self._walk)
        if page is None:
            self._end_walk()
            return 0
        claims = shelf.claims(page)
        known = await needs({claim.owner for claim in claims})
        over = [one.name for one in claims if shelf.is_over(one, known[one.owner], self._epoch())]
        await self._do(shelf.objects.delete, over)
        return len(over) + sum([await self._delete_expired(place, needs) for place in shelf.expired(page)])

    async def _delete_expired(self, place: str, needs: Needs) -> int:
        old = await self._do(self.shelf.old_copies, place)
        if not old:
            return 0
        claims = self.shelf.claims_on(place)
        while some := await self._do(lambda: next(claims, None)):
            if await self._are_needed(some, needs):
                await self._do(self.shelf.renew, old)
                return 0
        await self._do(self.shelf.delete, old)
        return len(old)

    async def _are_needed(self, claims: list[Claim], needs: Needs) -> bool:
        known = await needs({claim.owner for claim in claims})
        return any(
            need == "now" or (need == "unknown" and not self.shelf.is_over(claim, need, self._epoch()))
            for claim in claims
            for need in [known[claim.owner]]
        )

    def _end_walk(self) -> None:
        self._walk, self._walk_at = None, monotonic() + WALK_SECONDS

    # How

    async def _measure(self) -> int:
        def measured() -> int:
            return sum(in_blocks(entry.size) for page in self.shelf.entries() for entry in page)

        return await self._do(measured)

    async def _do(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """In a thread, because it blocks."""
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except FileNotFoundError:
            raise UnknownBlob() from None
        except OSError as problem:
            refusal = self._refusal(problem)
            log.warning("blobs_unavailable", problem=refusal.message)
            raise refusal from problem

    def _refusal(self, problem: OSError) -> FairleadError:
        if problem.errno in FULL:
            return BlobStoreFull(
                "The disk of the blobs is full: make room on it, or set blobs.url to another."
            )
        where = self._settings.url or self._folder
        return BlobStoreUnavailable(f"The blobs at {where} cannot be used: {problem.strerror or problem}.")

    def _too_large(self) -> BlobTooLarge:
        most = self._settings.max_bytes
        return BlobTooLarge(f"A file may have at most {most} bytes: split it, or raise blobs.max_bytes.")
