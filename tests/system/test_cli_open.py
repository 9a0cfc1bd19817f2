"""`fairlead open`: what it accepts, what it refuses, and what it leaves in the audit."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.settings import Settings, Slots
from fairlead.store.monitor import Monitor
from fairlead.store.store import Store
from tests.commands import Shell
from tests.faults.fleet import HASTE, file_of
from tests.servers import Server
from tests.store.namespace import key_names, new, raw, wipe


@pytest.fixture
def settings() -> Settings:
    return HASTE


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    (tmp_path / "fairlead.toml").write_text(file_of(HASTE))
    return Shell.beside(live_store, server.url, tmp_path)


async def lose(store: Store) -> None:
    prefix = store.connection.keys.prefix
    await raw(store).delete(*[prefix + name for name in await key_names(store)])
    await Monitor(store).check()


async def test_it_requires_an_option_that_says_what_is_accepted(shell: Shell) -> None:
    for words in ((), ("--new", "--restored")):
        refused = await shell.run("open", *words)
        assert (refused.code, "say --new" in refused.err) == (2, True), refused


async def test_a_lost_store_is_reported_by_every_command_and_accepted_as_new(
    shell: Shell, live_store: Store
) -> None:
    await live_store.submit_one(new())
    await lose(live_store)
    for command in (("stats",), ("submit", "echo"), ("task", "list")):
        refused = await shell.run(*command)
        assert (refused.code, "`fairlead open --new`" in refused.err) == (3, True), refused
    refused = await shell.run("open", "--restored")
    assert (refused.code, "is empty" in refused.err) == (2, True), refused
    opened = await shell.run("open", "--new")
    assert (opened.code, opened.out.splitlines()[-1]) == (
        0,
        f"Namespace {live_store.connection.keys.namespace!r} is open.",
    )
    await live_store.open()
    await live_store.submit_one(new())
    (entry,) = (await live_store.audit.page()).entries
    assert (entry.act, entry.after) == ("open", {"accepted": "new"})


async def go_back(store: Store) -> None:
    await raw(store).hincrby(store.connection.keys.meta, "beat", -1)
    await Monitor(store).check()


@pytest.mark.parametrize(("lost", "accept"), [(lose, "--new"), (go_back, "--restored")])
async def test_the_doctor_does_not_examine_what_a_loss_has_left_until_it_is_accepted(
    shell: Shell, live_store: Store, lost: Callable[[Store], Awaitable[None]], accept: str
) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await raw(live_store).hset(live_store.connection.keys.key("limit", "gpu"), "used", "1")  # a breach
    await lost(live_store)
    for form in ("table", "json"):
        refused = await shell.run("doctor", "--output", form)
        assert (refused.code, refused.out) == (2, ""), refused
        assert refused.err.startswith("fairlead: Nothing was checked. The store has ")
        assert f"`fairlead open {accept}`" in refused.err
        assert refused.err.count("\n") == 1
    assert (await shell.run("open", accept)).code == 0
    examined = await shell.run("doctor")
    assert examined.code == (0 if accept == "--new" else 1), examined
    await wipe(live_store)


async def test_the_doctor_names_a_meta_record_that_cannot_be_read(shell: Shell, live_store: Store) -> None:
    await wipe(live_store)
    await raw(live_store).set(live_store.connection.keys.meta, "not a hash")
    examined = await shell.run("doctor")
    assert (examined.code, "K1" in examined.out, examined.err) == (1, True, ""), examined
    await wipe(live_store)


async def test_the_doctor_names_a_beat_that_is_not_a_number_and_accepting_the_data_repairs_it(
    shell: Shell, live_store: Store
) -> None:
    await raw(live_store).hset(live_store.connection.keys.meta, "beat", "soon")
    for form in ("table", "json"):
        examined = await shell.run("doctor", "--output", form)
        assert (examined.code, examined.err) == (1, ""), examined
        assert "K6" in examined.out and "field beat is 'soon'" in examined.out
        assert "`fairlead open --restored`" in examined.out
    assert (await shell.run("open", "--restored")).code == 0
    healthy = await shell.run("doctor")
    assert healthy.code == 0, healthy
    await live_store.open()


async def test_commands_work_where_an_operator_elsewhere_has_accepted_the_loss(
    shell: Shell, live_store: Store, tmp_path: Path
) -> None:
    """This machine remembers the earlier data, and runs no process that would know of the loss."""
    assert (await shell.run("key", "create", "--scope", "read", "--name", "a")).code == 0
    await lose(live_store)
    elsewhere = replace(shell, env={"XDG_STATE_HOME": str(tmp_path / "elsewhere")})
    assert (await elsewhere.run("open", "--new")).code == 0
    for command in (("stats",), ("task", "list"), ("doctor",), ("submit", "echo")):
        ended = await shell.run(*command)
        assert ended.code == 0, ended
    await live_store.open()


async def test_a_command_remembers_what_it_has_seen(shell: Shell, live_store: Store) -> None:
    """Nobody else runs, and the next command finds nothing where there was something."""
    create = ("key", "create", "--scope", "read", "--name")
    assert (await shell.run(*create, "a")).code == 0
    (file,) = (shell.home / ".local" / "state" / "fairlead").glob("*.json")
    seen = json.loads(file.read_text())
    assert seen["namespace"] == live_store.connection.keys.namespace
    assert seen["epoch"] == live_store.connection.membership.epoch
    await wipe(live_store)
    refused = await shell.run(*create, "b")
    assert (refused.code, "`fairlead open --new`" in refused.err) == (3, True), refused
    assert await key_names(live_store) == []
