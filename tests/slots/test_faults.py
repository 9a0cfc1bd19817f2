"""Stores that fail, answer twice, or cannot be trusted."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.slots import SlotStore
from fairlead.slots.folder import Folder
from tests.object_store import KEYS
from tests.servers import free_port
from tests.slots.unconditional import unconditional_store


def use(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)


async def test_a_store_that_ignores_conditions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with unconditional_store() as address:
        use(address, monkeypatch)
        slots = SlotStore("s3://bucket/slots")
        for _ in range(2):
            with pytest.raises(errors.InvalidSettings, match="ignores conditions of writes"):
                await slots.set_limit("gpu", 1)


async def test_a_store_that_cannot_be_reached_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    use(f"http://127.0.0.1:{free_port()}", monkeypatch)
    with pytest.raises(errors.SlotStoreUnavailable, match="try again"):
        await SlotStore("s3://bucket/slots").try_acquire("gpu", 1, "w")


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.SlotStoreUnavailable):
        await SlotStore(f"file://{tmp_path}/file").try_acquire("gpu", 1, "w")


async def test_a_request_that_was_sent_again_does_not_conflict_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Folder.write

    async def write_twice(self: Folder, name: str, content: bytes, version: str | None) -> bool:
        await write(self, name, content, version)
        return await write(self, name, content, version)

    monkeypatch.setattr(Folder, "write", write_twice)
    slots = SlotStore(f"file://{tmp_path}")
    slot = await slots.try_acquire("gpu", 1, "w")
    assert slot
    assert (await slots.extend(slot, 60)).expires_at > slot.expires_at
    await slots.release(slot)
    assert (await slots.status("gpu")).active == 0
