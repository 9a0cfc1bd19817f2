"""Files with the blocking API, on each kind of backend."""

from pathlib import Path

import pytest

from fairlead import BlobRef, Context
from fairlead.client.target import Target
from fairlead.sync import Fairlead


def test_a_script_uploads_and_opens_files(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))  # of the blobs beside a server of your own
    fl = Fairlead(target.url, data=target.data, namespace=target.namespace or "default")

    @fl.task
    def shout(source: BlobRef, ctx: Context) -> dict[str, BlobRef]:
        with ctx.open(source) as file:
            return {"loud": ctx.blob(file.read().upper()).wait()}

    path = tmp_path / "words.txt"
    path.write_text("hello")
    with fl, fl.worker():
        result = shout.submit(fl.blob(path)).result(timeout=30)
        with fl.open(result["loud"]) as file:
            assert file.read() == b"HELLO"
