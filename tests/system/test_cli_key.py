"""`fairlead key`: made, listed, rotated, revoked; the key itself is printed once, alone."""

import json

import pytest

from fairlead.store.store import Store
from tests.api_keys import usable_key
from tests.commands import Shell


async def test_a_key_is_printed_alone_and_listed_without_its_secret(live_store: Store, shell: Shell) -> None:
    made = await shell.run(
        *("key", "create", "--name", "web", "--scope", "submit,read", "--scope", "cancel"),
        *("--tenant", "acme", "--expires", "90d"),
    )
    assert (made.code, made.err) == (0, "Keep it: it is not shown again.\n")
    key_text = made.out.strip()
    key = await usable_key(live_store, key_text)
    assert key and (key.scopes, key.tenant) == (("submit", "read", "cancel"), "acme")
    assert key.expires_at == key.created_at + 90 * 86_400_000
    table = (await shell.run("key", "list")).out
    assert [*table.splitlines()[1].split()][:5] == [key.id, "web", "active", "submit,read,cancel", "acme"]
    assert key_text[13:] not in table
    (listed,) = json.loads((await shell.run("key", "list", "--output", "json")).out)["keys"]
    assert (listed["id"], listed["state"], listed["last_used_at"]) == (key.id, "active", None)


async def test_a_key_is_rotated_and_revoked_by_its_id_or_its_text(live_store: Store, shell: Shell) -> None:
    answer = await shell.run("key", "create", "--name", "a", "--scope", "read", "--output", "json")
    made = json.loads(answer.out)
    again = await shell.run("key", "rotate", made["id"], "--overlap", "0s")
    assert again.code == 0
    assert await usable_key(live_store, made["key"]) is None
    new_text = again.out.strip()
    new = await usable_key(live_store, new_text)
    assert new and (new.replaces, new.expires_at) == (made["id"], None)
    assert (await shell.run("key", "revoke", new_text)).out == f"{new.id} revoked\n"
    assert await usable_key(live_store, new_text) is None
    ended = await shell.run("key", "rotate", new.id)
    assert (ended.code, ended.out) == (1, "")
    assert "was revoked or has expired" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("create", "--name", "a", "--scope", "rule"), 2, "'rule' is unknown: use some of submit"),
        (("create", "--name", "a"), 2, "scope"),
        (("create", "--scope", "read"), 2, "name"),
        (("create", "--name", "a", "--scope", "read", "--expires", "soon"), 2, "'soon' is not a time such"),
        (("create", "--name", "a", "--scope", "read", "--expires", "0d"), 2, "number of seconds"),
        (("revoke", "nonsense"), 1, "There is no such API key"),
        (("rotate", "nonsense", "--overlap", "1"), 2, "'1' is not a time such"),
    ],
)
async def test_a_command_that_fails_says_why(
    arguments: tuple[str, ...], code: int, says: str, shell: Shell
) -> None:
    answer = await shell.run("key", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert says.lower() in answer.err.lower()
