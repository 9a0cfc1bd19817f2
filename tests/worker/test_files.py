"""Files in handlers, in every place that these can run, with the engine itself and through a gateway."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from fairlead import BlobRef, BlobTooLarge, Fairlead, FairleadError, InvalidInput, PermanentError, TaskFailed
from fairlead.testing import run_inline
from fairlead.worker.handler import RunIn
from tests.api.conftest import gateway, store
from tests.apps import files
from tests.client.conftest import QUICK
from tests.worker.places import PLACES, move

__all__ = ["gateway", "store"]

LOUD = f"sha256:{hashlib.sha256(b'A CIRCLE').hexdigest()}"
ASYNC_PLACES: tuple[RunIn, ...] = ("loop", "process")


@pytest.fixture(scope="module")
def server_env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("gateway")
    return {**QUICK, "FAIRLEAD_BLOBS__URL": f"file://{folder}", "FAIRLEAD_BLOBS__MAX_BYTES": "1000"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "files.toml"
    path.write_text(
        f'[blobs]\nurl = "file://{tmp_path}/blobs"\nmax_bytes = 1000\n'
        "[retry]\nbase_seconds = 0.01\nmax_seconds = 0.01\n"
    )
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What is downloaded goes here, and nothing is left of it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(params=["engine", "gateway"])
def app(request: pytest.FixtureRequest) -> Fairlead:
    if request.param == "engine":
        new_app: Callable[[], Fairlead] = request.getfixturevalue("new_app")
        made = new_app()
    else:
        request.getfixturevalue("store")
        made = Fairlead(request.getfixturevalue("gateway").url)
    request.getfixturevalue("temporary")  # last: the servers have temporary files too
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "main.asy"
    path.write_text("a circle")
    return path


@pytest.mark.parametrize(
    ("task_type", "place"),
    [
        *(("shout", place) for place in PLACES if place != "loop"),
        *(("shout_async", it) for it in ASYNC_PLACES),
    ],
)
async def test_a_handler_opens_a_file_and_makes_one(
    app: Fairlead, task_type: str, place: RunIn, source: Path
) -> None:
    move(files.fl, app, place)
    async with app, app.worker():
        ref = await app.blob(source)
        assert (ref.name, ref.size) == ("main.asy", 8)
        task = await app.submit(task_type, {"source": ref})
        result = await task.result(timeout=30)
        assert result["loud"] == {"blob": LOUD, "size": 8, "name": "loud.txt", "content_type": "text/plain"}
        async with app.open(result["loud"]) as file:
            assert file.read() == b"A CIRCLE"


async def test_a_handler_uploads_a_file_by_its_path(app: Fairlead, source: Path) -> None:
    move(files.fl, app, "process")
    async with app, app.worker():
        ref = await (await app.submit("uploads", {"path": str(source)})).result(timeout=30)
        assert ref["name"] == "main.asy"
        with pytest.raises(TaskFailed, match=r"cannot read .*/missing") as failed:
            await (await app.submit("uploads", {"path": str(source.with_name("missing"))})).result(timeout=30)
        assert not failed.value.retriable
        source.write_bytes(b"x" * 1001)
        with pytest.raises(TaskFailed, match="at most 1000 bytes") as failed:
            await (await app.submit("uploads", {"path": str(source)})).result(timeout=30)
        assert failed.value.code == "blob_too_large"
        with pytest.raises(BlobTooLarge):
            await app.blob(source)


@pytest.mark.parametrize("place", ["thread", "process"])
async def test_a_file_that_is_gone_fails_the_task_for_good(app: Fairlead, place: RunIn) -> None:
    move(files.fl, app, place)
    async with app, app.worker():
        task = await app.submit("opens", {"name": "sha256:" + "0" * 64})
        with pytest.raises(TaskFailed, match="There is no such blob") as failed:
            await task.result(timeout=30)
        assert (failed.value.code, (await task.get()).retry_count) == ("unknown_blob", 0)
        task = await app.submit("opens", {"name": "nonsense"})
        with pytest.raises(TaskFailed, match="is not a reference"):
            await task.result(timeout=30)


async def test_a_task_without_its_file_is_not_accepted(app: Fairlead) -> None:
    move(files.fl, app, "thread")
    async with app:
        lost = BlobRef(blob="sha256:" + "0" * 64, size=1)
        with pytest.raises(InvalidInput, match="there is no blob sha256:0000") as refused:
            await app.submit("shout", {"source": lost})
        assert refused.value.code == "unknown_blob"
        answers = await app.submit_many(
            [files.shout.new(lost), files.uploads.new("a"), files.shout.new(source=lost)], return_errors=True
        )
        assert [isinstance(answer, InvalidInput) for answer in answers] == [True, False, True]
        with pytest.raises(InvalidInput, match="parameters: do not fit"):
            await files.shout.submit({"blob": "sha256:1", "size": 1})
        with pytest.raises(InvalidInput, match="cannot read /nowhere"):
            await app.blob("/nowhere")


async def test_the_event_loop_is_not_blocked(app: Fairlead, source: Path) -> None:
    move(files.fl, app, "loop")
    async with app, app.worker():
        task = await app.submit("blocks", {"source": await app.blob(source)}, max_retries=0)
        with pytest.raises(TaskFailed, match=r"use `async with ctx\.open"):
            await task.result(timeout=30)


async def test_inline_there_are_none() -> None:
    with pytest.raises(FairleadError, match="There are no blobs here"):
        await run_inline(files.uploads, "a")
    assert not isinstance(FairleadError, PermanentError)
