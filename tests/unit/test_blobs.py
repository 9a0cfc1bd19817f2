"""Blobs without a store: where they are, until when, and for whom; in a folder and in an object store."""

import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from pathlib import Path

import msgspec
import pytest
from obstore.store import LocalStore

from fairlead import errors
from fairlead.blobs import shelf
from fairlead.blobs.blobs import Blobs
from fairlead.blobs.bucket import Bucket
from fairlead.blobs.folder import Folder, Objects
from fairlead.blobs.local import STALE_MS, downloaded
from fairlead.blobs.shelf import FOREIGN_MS, MARGIN, UNKNOWN_MS, Need, Owner, Shelf
from fairlead.clock import now_ms
from fairlead.model.blob import MOST_REFS, BlobRef, as_ref, digests_in, names_blobs
from fairlead.settings import BlobSettings

DAY = 86_400_000
HELLO = hashlib.sha256(b"hello").hexdigest()
ANN, BOB = Owner("task", "ann"), Owner("job", "bob")


class Later:
    """The time of the files and what is added to it."""

    ms = 0

    def __call__(self) -> int:
        return now_ms() + self.ms


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture(params=["folder", "bucket", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    root = tmp_path / "root"
    root.mkdir()
    if request.param == "s3":
        return Bucket.at(request.getfixturevalue("s3").new_url(), tmp_path / "scratch")
    return Folder(root) if request.param == "folder" else Bucket(LocalStore(root), tmp_path / "scratch")


class Kept(Blobs):
    """Blobs in these objects, at this time; and what their owners need."""

    def __init__(self, objects: Objects, clock: Later, settings: BlobSettings, folder: Path) -> None:
        super().__init__(settings, "test", folder, lambda: "1-a")
        self._shelf = Shelf(objects, "test", DAY, clock)
        self.known: dict[Owner, Need] = {}

    async def needs(self, owners: Collection[Owner]) -> Mapping[Owner, Need]:
        return {owner: self.known.get(owner, "unknown") for owner in owners}

    async def tidied(self) -> int:
        """Everything, once."""
        self._walk_at = 0.0
        deleted = await self.tidy(self.needs)
        while self._walk:
            deleted += await self.tidy(self.needs)
        return deleted

    async def content(self, digest: str, tenant: str | None = None) -> bytes:
        return b"".join([piece async for piece in self.read(await self.find(tenant, digest))])

    def names(self) -> list[str]:
        return sorted(entry.name for page in self.shelf.entries() for entry in page)


@pytest.fixture
def blobs(objects: Objects, later: Later, tmp_path: Path) -> Kept:
    return Kept(objects, later, BlobSettings(), tmp_path)


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece


def claimed(blobs: Blobs, owner: Owner, tenant: str | None = None, digest: str = HELLO) -> Awaitable[None]:
    text = msgspec.json.encode({"source": {"blob": f"sha256:{digest}", "size": 5}}).decode()
    return blobs.claim(owner, tenant, "parameters", text)


async def test_what_is_put_can_be_read(blobs: Kept, tmp_path: Path) -> None:
    big = tmp_path / "big.bin"
    big.write_bytes(bytes(range(256)) * 3000)
    ref = await blobs.put(big, name="big.bin")
    assert (ref.size, ref.content_type) == (768_000, "application/octet-stream")
    assert await blobs.content(ref.digest) == big.read_bytes()
    local = await blobs.fetch(ref)
    assert local.path.read_bytes() == big.read_bytes()
    if local.is_temporary:
        local.path.unlink()
    assert (await blobs.put(b"")).size == 0


async def test_the_same_content_is_kept_once(blobs: Kept) -> None:
    first = await blobs.receive(pieces(b"hel", b"lo"), tenant=None)
    again = await blobs.receive(pieces(b"hello"), tenant=None, size=5, digest=HELLO)
    assert (first.is_new, again.is_new, first.blob, again.blob) == (True, False, again.blob, first.blob)
    assert [name for name in blobs.names() if not name.endswith(".used")] == blobs.names()[:1]


async def test_a_tenant_has_its_own(blobs: Kept) -> None:
    await blobs.put(b"hello", tenant="a")
    for other in (None, "b", "a/", ".."):
        with pytest.raises(errors.UnknownBlob):
            await blobs.find(other, HELLO)
        with pytest.raises(errors.InvalidInput, match="there is no blob"):
            await claimed(blobs, ANN, other)
    assert await blobs.content(HELLO, "a") == b"hello"


async def test_it_is_gone_when_its_time_is_over(blobs: Kept, later: Later) -> None:
    await blobs.put(b"hello")
    later.ms = DAY - 5000
    assert await blobs.content(HELLO) == b"hello"
    later.ms = DAY + 1
    with pytest.raises(errors.UnknownBlob):
        await blobs.find(None, HELLO)
    with pytest.raises(errors.InvalidInput) as refused:
        await claimed(blobs, ANN)
    assert (refused.value.code, refused.value.field) == ("unknown_blob", "parameters")
    assert await blobs.tidied() == 0  # the clocks of others may differ
    later.ms = DAY + MARGIN + 1
    assert await blobs.tidied() == 1
    assert blobs.names() == []


async def test_each_use_renews_it(blobs: Kept, objects: Objects, tmp_path: Path) -> None:
    await blobs.put(b"hello")
    (copy,) = blobs.shelf.entries().__next__()
    old = Kept(objects, Later(), BlobSettings(), tmp_path)
    await claimed(old, ANN)
    (renewed,) = [entry for page in old.shelf.entries() for entry in page if entry.name.endswith(".used")]
    assert renewed.name == copy.name + ".used"
    assert renewed.changed_at >= copy.changed_at


@pytest.mark.parametrize(
    ("need", "kept", "claims"),
    [("now", True, 1), ("perhaps", False, 1), ("never", False, 0), ("unknown", False, 0)],
)
async def test_who_needs_it_keeps_it(blobs: Kept, later: Later, need: Need, kept: bool, claims: int) -> None:
    await blobs.put(b"hello")
    await claimed(blobs, ANN)
    blobs.known = {ANN: need}
    later.ms = DAY + MARGIN + 1
    await blobs.tidied()
    await blobs.tidied()  # of two pages the claims may come second
    assert sum("/claims/" in name for name in blobs.names()) == claims
    assert any("/blobs/" in name for name in blobs.names()) == kept


async def test_a_task_that_is_being_submitted_keeps_it(
    blobs: Kept, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "UNKNOWN_MS", 2 * DAY)
    await blobs.put(b"hello")
    await claimed(blobs, ANN)
    later.ms = DAY + MARGIN + 1
    assert await blobs.tidied() == 0
    assert len(blobs.names()) == 3
    assert UNKNOWN_MS < DAY


async def test_another_server_with_the_same_folder_keeps_what_it_needs(blobs: Kept, later: Later) -> None:
    await blobs.put(b"hello")
    blobs._epoch = lambda: "2-b"
    await claimed(blobs, ANN)
    blobs._epoch = lambda: "1-a"
    later.ms = DAY + MARGIN + 1
    assert await blobs.tidied() == 0
    later.ms = FOREIGN_MS + 1000
    assert await blobs.tidied() > 0
    await blobs.tidied()
    assert blobs.names() == []


async def test_an_upload_while_the_old_copy_is_being_deleted_is_kept(
    blobs: Kept, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs.put(b"hello")
    later.ms = DAY + MARGIN + 1
    (place,) = blobs.shelf.expired(next(blobs.shelf.entries()))
    old = blobs.shelf.old_copies(place)  # the upkeep has looked, and stops here for a while
    later.ms = 0
    again = Kept(blobs.shelf.objects, later, BlobSettings(), Path())
    monkeypatch.setattr(again.shelf, "find", _nothing)  # its time is over
    assert (await again.receive(pieces(b"hello"), tenant=None)).is_new
    blobs.shelf.delete(old)
    assert await blobs.content(HELLO) == b"hello"


def _nothing(*_: object) -> shelf.Copy:
    raise errors.UnknownBlob()


async def test_a_claim_that_comes_too_late_is_withdrawn(
    blobs: Kept, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs.put(b"hello")
    mark = blobs.shelf.objects.mark

    def stopped_before(name: str) -> None:
        later.ms = DAY + 1  # it has found the blob, and then the process was stopped for long
        mark(name)

    monkeypatch.setattr(blobs.shelf.objects, "mark", stopped_before)
    with pytest.raises(errors.InvalidInput, match="expired"):
        await claimed(blobs, ANN)
    assert not [name for name in blobs.names() if "/claims/" in name]
    later.ms = DAY + MARGIN + 5000
    await blobs.tidied()
    assert blobs.names() == []  # nor is the mark left


async def test_what_a_killed_upload_left_is_deleted(
    blobs: Kept, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = blobs.shelf.objects.scratch
    scratch.mkdir(exist_ok=True)
    (scratch / "left").write_bytes(b"x")
    await blobs.tidied()
    assert (scratch / "left").exists()
    monkeypatch.setattr("fairlead.blobs.local.now_ms", lambda: now_ms() + STALE_MS + 1000)
    await blobs.tidied()
    assert not (scratch / "left").exists()


# Bounds


async def test_a_file_that_is_too_large_leaves_nothing(
    objects: Objects, later: Later, tmp_path: Path
) -> None:
    blobs = Kept(objects, later, BlobSettings(max_bytes=4), tmp_path)
    for size in (5, None):
        with pytest.raises(errors.BlobTooLarge, match="at most 4 bytes"):
            await blobs.receive(pieces(b"hel", b"lo"), tenant=None, size=size)
    assert blobs.names() == []
    assert not objects.scratch.exists() or not list(objects.scratch.iterdir())
    await blobs.receive(pieces(b"hell"), tenant=None)


async def test_all_together_have_a_bound(objects: Objects, later: Later, tmp_path: Path) -> None:
    blobs = Kept(objects, later, BlobSettings(max_total_bytes=8192), tmp_path)
    await blobs.put(b"a")
    await blobs.put(b"b")
    await blobs.put(b"")
    with pytest.raises(errors.BlobStoreFull, match=r"blobs take 8192 bytes.*raise blobs.max_total_bytes"):
        await blobs.put(b"c")
    other = Kept(objects, later, BlobSettings(max_total_bytes=8192), tmp_path)
    with pytest.raises(errors.BlobStoreFull):  # another process finds what is there
        await other.put(b"c")
    later.ms = DAY + MARGIN + 1
    await other.tidied()
    other._usage._measured_at -= 2  # it looks once a second
    await other.put(b"c")


async def test_other_content_than_was_promised_is_refused(blobs: Kept) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        await blobs.receive(pieces(b"hello!"), tenant=None, digest=HELLO)
    assert refused.value.code == "digest_mismatch"
    assert blobs.names() == []


async def test_damage_on_the_way_is_noticed() -> None:
    with pytest.raises(errors.BlobStoreUnavailable, match="damaged"):
        await downloaded(pieces(b"hellO"), HELLO)


async def test_a_folder_that_cannot_be_used_is_named_to_operators_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blobs = Blobs(BlobSettings(url=f"file://{tmp_path}/file/below"), "test", tmp_path)
    with pytest.raises(errors.BlobStoreUnavailable) as refused:
        await blobs.put(b"hello")
    assert f"{tmp_path}/file/below cannot be used: Not a directory" in refused.value.message
    assert str(tmp_path) not in refused.value.public_message


def test_a_bucket_needs_a_package(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from pathlib import Path; from fairlead.settings import BlobSettings\n"
        "from fairlead.blobs.blobs import Blobs\n"
        "Blobs(BlobSettings(url='s3://bucket/x'), 'n', Path('.')).shelf\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InvalidSettings: blobs.url names an object store: install the package for it" in ended.stderr
    assert "pip install 'fairlead[s3]'" in ended.stderr


# References


def test_references_are_found_wherever_they_are() -> None:
    ref = BlobRef(blob=f"sha256:{HELLO}", size=5, name="a")
    given = {"a": [{"b": ref}], "text": msgspec.json.encode(ref).decode(), "other": {"blob": "sha256:12"}}
    assert names_blobs(given)
    assert digests_in(msgspec.json.encode(given).decode()) == [HELLO]
    assert digests_in(msgspec.json.encode({"text": given["text"]}).decode()) == []
    assert not names_blobs({"blob": 1})
    assert not names_blobs({"x": object()})
    assert as_ref({"blob": ref.blob, "size": 5, "name": "a"}) == ref


def test_there_are_not_too_many_references() -> None:
    refs = [{"blob": f"sha256:{number:064x}", "size": 1} for number in range(MOST_REFS + 1)]
    with pytest.raises(errors.InvalidInput, match="at most 64"):
        digests_in(msgspec.json.encode(refs).decode())


@pytest.mark.parametrize("wrong", [{}, {"blob": "sha256:1", "size": 1}, {"blob": f"sha256:{HELLO}"}, 5, "x"])
def test_what_is_no_reference_is_refused(wrong: object) -> None:
    with pytest.raises(errors.InvalidInput, match="is not a reference"):
        as_ref(wrong)  # type: ignore[arg-type]
