"""`fairlead blob`, and `fairlead submit --file`."""

import json
from pathlib import Path

import pytest

from fairlead.store.store import Store
from tests.commands import Shell
from tests.servers import Server

DIGEST = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    (tmp_path / "words.txt").write_text("hello")
    return Shell.beside(live_store, server.url, tmp_path)


async def test_what_is_put_can_be_got(shell: Shell) -> None:
    put = await shell.run("blob", "put", "words.txt")
    ref = {"blob": f"sha256:{DIGEST}", "size": 5, "name": "words.txt", "content_type": "text/plain"}
    assert (put.code, json.loads(put.out), put.err) == (0, ref, "")
    as_json = await shell.run("blob", "put", "words.txt", "--output", "json")
    assert json.loads(as_json.out) == ref
    for given in (put.out.strip(), ref["blob"]):
        got = await shell.run("blob", "get", str(given))
        assert (got.code, got.out, got.err) == (0, "hello", "")
    got = await shell.run("blob", "get", f"sha256:{DIGEST}", "--output", "copy.txt")
    assert (got.code, got.out) == (0, "")
    assert (shell.home / "copy.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("blob", "put", "missing"), 2, "cannot read missing: No such file"),
        (("blob", "get", "nonsense"), 2, "is not a reference"),
        (("blob", "get", "{"), 2, "is not a reference"),
        (("blob", "get", f"sha256:{DIGEST}"), 1, "There is no such blob"),
        (("submit", "draw", "--file", "words.txt"), 2, "'words.txt' is not name=PATH"),
        (("submit", "draw", "--file", "a=missing"), 2, "cannot read missing: No such file"),
    ],
)
async def test_mistakes_are_a_sentence(
    shell: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ended = await shell.run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("fairlead: ") and words in ended.err and ended.err.count("\n") == 1


async def test_a_file_is_uploaded_for_a_task(shell: Shell, live_store: Store) -> None:
    ended = await shell.run("submit", "draw", "--file", "source=words.txt", "--param", "size=2")
    assert ended.code == 0, ended.err
    task = await live_store.get(ended.out.split()[0])
    assert task.parameters["size"] == 2
    assert task.parameters["source"]["blob"] == f"sha256:{DIGEST}"
