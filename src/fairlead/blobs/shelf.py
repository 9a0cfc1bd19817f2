"""Which blobs of a namespace there are, until when, and who needs them: the rules, in calls that block.

A tenant's blobs are below `<namespace>/<tenant>`: a copy of the content is `blobs/<digest>/<id>`, beside it
the empty `<id>.used` has the time of its last use, and each task or job that was submitted with the blob has
a claim `claims/<digest>/<task or job>.<epoch>.<its id>`.

Nothing is locked. A copy whose time is over is gone for everybody who submits or uploads, and is deleted only
MARGIN later, if nobody who still needs it has a claim. Whoever makes a claim looks at the clock once more
afterwards: if the time was not over then, whoever deletes looked later and saw the claim. This holds as long
as the clocks of the machines differ by less than MARGIN (docs/decisions/0037-files-beside-the-store.md).
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from fairlead.blobs.folder import Entry, Objects
from fairlead.clock import now_ms
from fairlead.errors import UnknownBlob
from fairlead.model.blob import StoredBlob

MARGIN = 60_000  # ms
UNKNOWN_MS = 3_600_000  # in which a task that was claimed for is certainly submitted, or never will be
FOREIGN_MS = 30 * 86_400_000  # claims of another epoch, which may be another server with the same namespace
USED = ".used"

#: Whether the owner of a claim needs the blob now, may need it again (it failed), never will, or is unknown.
Need = Literal["now", "perhaps", "never", "unknown"]


class Owner(NamedTuple):
    kind: Literal["task", "job"]
    id: str


class Copy(NamedTuple):
    name: str
    size: int
    expires_at: int  # ms


class Claim(NamedTuple):
    name: str
    owner: Owner
    epoch: str
    made_at: int


class Shelf:
    def __init__(
        self, objects: Objects, namespace: str, keep_ms: int, clock: Callable[[], int] = now_ms
    ) -> None:
        self.objects = objects
        self._top = f"ns-{namespace}"
        self._keep_ms = keep_ms
        self._now = clock

    def find(self, tenant: str | None, digest: str) -> Copy:
        """The copy that is kept the longest. Raises UnknownBlob."""
        copies = self._copies(self._place(tenant, "blobs", digest))
        best = max(copies, key=lambda copy: copy.expires_at, default=None)
        if best is None or best.expires_at <= self._now():
            raise UnknownBlob()
        return best

    def keep(self, tenant: str | None, digest: str, size: int, file: Path) -> StoredBlob:
        """Takes the uploaded file, or keeps the same content that is there for longer."""
        is_new = False
        try:
            self._use(self.find(tenant, digest))
        except UnknownBlob:
            self.objects.add(f"{self._place(tenant, 'blobs', digest)}/{uuid.uuid4()}", file)
            is_new = True
        return StoredBlob(f"sha256:{digest}", size, self._now() + self._keep_ms, is_new)

    def claim(self, tenant: str | None, digest: str, owner: Owner, epoch: str) -> None:
        """From now on the blob is kept until the owner has ended. Raises UnknownBlob."""
        found = self.find(tenant, digest)
        claim = f"{self._place(tenant, 'claims', digest)}/{owner.kind}.{epoch}.{owner.id}"
        self.objects.mark(claim)
        try:
            self._use(found)
        except UnknownBlob:
            self.objects.delete([claim])
            raise

    def entries(self) -> Iterator[list[Entry]]:
        return self.objects.pages(self._top)

    def _use(self, copy: Copy) -> None:
        """What was found is kept for longer. Raises UnknownBlob if its time ended meanwhile."""
        self.objects.mark(copy.name + USED)
        if copy.expires_at <= self._now():  # it may be deleted by somebody who has not seen the mark
            raise UnknownBlob()

    # What the upkeep does

    def expired(self, page: Iterable[Entry]) -> set[str]:
        """Where there may be copies to delete."""
        ended = self._now() - self._keep_ms - MARGIN
        places = (entry.name.rpartition("/")[0] for entry in page if entry.changed_at <= ended)
        return {place for place in places if place.split("/")[2:3] == ["blobs"]}

    def claims(self, page: Iterable[Entry]) -> list[Claim]:
        found = []
        for name, _, made_at in page:
            _, _, shelf, *_, last = name.split("/")
            kind, epoch, owner_id = (*last.split("."), "", "")[:3]
            if shelf == "claims" and kind in ("task", "job"):
                found.append(
                    Claim(name, Owner("task" if kind == "task" else "job", owner_id), epoch, made_at)
                )
        return found

    def is_over(self, claim: Claim, need: Need, epoch: str) -> bool:
        if need == "unknown":
            age = self._now() - claim.made_at
            return age > (UNKNOWN_MS if claim.epoch == epoch else FOREIGN_MS)
        return need == "never"

    def claims_on(self, place: str) -> Iterator[list[Claim]]:
        """Page by page, on the copies at this place."""
        for page in self.objects.pages(place.replace("/blobs/", "/claims/")):
            yield self.claims(page)

    def old_copies(self, place: str) -> list[Copy]:
        """To be deleted if, after this look, nobody needs them; also marks whose copy is gone."""
        now = self._now()
        return [copy for copy in self._copies(place, USED) if copy.expires_at + MARGIN <= now]

    def renew(self, copies: Sequence[Copy]) -> None:
        for copy in copies:
            self.objects.mark(copy.name + USED)

    def delete(self, copies: Sequence[Copy]) -> None:
        """The content first: a mark alone is no copy, and is deleted when its own time is over."""
        for copy in copies:
            self.objects.delete([copy.name, copy.name + USED])

    def _copies(self, place: str, of_marks: str = "") -> list[Copy]:
        found = {entry.name: entry for page in self.objects.pages(place) for entry in page}
        copies = []
        for name in {name.removesuffix(of_marks) for name in found}:
            entries = [found[one] for one in (name, name + USED) if one in found]
            if not name.endswith(USED):
                expires_at = max(entry.changed_at for entry in entries) + self._keep_ms
                copies.append(Copy(name, max(entry.size for entry in entries), expires_at))
        return copies

    def _place(self, tenant: str | None, shelf: str, digest: str) -> str:
        """A tenant may be called anything: its digest is the name of its folder."""
        whose = "operator" if tenant is None else hashlib.sha256(tenant.encode()).hexdigest()[:32]
        return f"{self._top}/{whose}/{shelf}/{digest}"
