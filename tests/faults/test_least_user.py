"""The user that the page on engines creates: it can do all that Fairlead does, and nothing else."""

import contextlib
import re
import shlex
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from fairlead import errors
from fairlead.settings import EngineSettings, Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.acts import ACTS, busy
from tests.conftest import Clock
from tests.connections import PatientConnection
from tests.faults.replicas import is_linked, primary_and_replica
from tests.pages import Page, all_blocks
from tests.servers import binary, free_port, running
from tests.store.test_address import certify, is_watched, works
from tests.waiting import wait_until

STORE = Path(__file__).parents[2] / "src" / "fairlead" / "store"
#: Every connection may send it; Fairlead does without it; it is for the embedded server, or no command.
NOT_NEEDED = {"auth", "hello", "config", "evalsha", "bgsave", "command", "readonly"}
#: They change the configuration of the server first, which Fairlead never does.
BY_THE_ADMIN = {"inspect"}


def setuser() -> list[str]:
    """The command of the page, as words."""
    (block,) = [block for block in all_blocks(Page("docs/engines.md").text) if "ACL SETUSER" in block.text]
    return shlex.split(block.text.replace("\\\n", ""))[1:]


def granted() -> set[str]:
    return {word[1:] for word in setuser() if word.startswith("+")}


def test_every_command_that_is_granted_is_used_and_every_one_that_is_used_is_granted() -> None:
    with primary_and_replica() as (server, _), redis.Redis.from_url(server.url) as client:
        known = {name.decode() for name in client.execute_command("COMMAND LIST")}
    used = set[str]()
    for file in (*STORE.rglob("*.py"), *STORE.rglob("*.lua")):
        words = re.findall(r"""["']([A-Z]{3,})["']""", file.read_text())
        used |= {word.lower() for word in words} & known
    assert {name.partition("|")[0] for name in granted()} == used - NOT_NEEDED


@pytest.mark.timeout(120)
async def test_it_can_do_all_that_fairlead_does_and_reach_nothing_else() -> None:
    with primary_and_replica() as (server, replica), redis.Redis.from_url(server.url) as admin:
        await wait_until(lambda: is_linked(replica), 30, "the replica follows")
        assert admin.execute_command(*setuser())
        url = f"unix://fairlead:CHANGE-ME@{server.url.removeprefix('unix://')}"
        await works(url)
        for number, act in enumerate(act for name, act in ACTS.items() if name not in BY_THE_ADMIN):
            clock = Clock()
            settings = replace(Settings(), engine=EngineSettings(url=url, replicas=1))
            store = Store(PatientConnection.to(url, f"n{number}", replicas=1), settings, clock)
            await store.open()
            await act(await busy(store, clock))
            assert await examine(store.connection, now_ms=clock.now, twice=False) == []
            await store.close()
        denied = {entry["object"] for entry in admin.acl_log()}
        assert denied <= {"config|get", "client|setinfo"}, "a call was refused"
        assert admin.function_list(), "acts were sent as scripts"
        for command in ("GET other", "GET {fl:n0}", "FLUSHALL", "KEYS *", "CONFIG GET *", "PUBLISH x y"):
            assert b"has no permissions" in dry_run(admin, command), command
        assert dry_run(admin, "GET {fl:n0}:meta") == b"OK"


async def test_it_is_enough_behind_sentinels_with_a_user_of_their_own(tmp_path: Path) -> None:
    port, sentinel = free_port(), free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {sentinel}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor jobs 127.0.0.1 {port} 1\n"
        "user watcher on >se/same +sentinel +subscribe +ping allchannels\n"
    )
    with running("valkey", "--port", str(port), "--bind", "127.0.0.1") as server:
        with redis.Redis.from_url(server.url) as admin:
            assert admin.execute_command(*setuser())
        watching = subprocess.Popen(
            [str(binary("valkey")), str(config), "--sentinel"], stdout=subprocess.DEVNULL
        )
        try:
            with redis.Redis(port=sentinel) as client:
                await wait_until(lambda: is_watched(client), because="the Sentinel has found the primary")
                client.execute_command("ACL", "SETUSER", "default", "off")
            url = f"redis+sentinel://fairlead:CHANGE-ME@127.0.0.1:{sentinel}/jobs?sentinel_username=watcher"
            await works(f"{url}&sentinel_password=se%2Fsame")
            with pytest.raises(errors.StoreUnavailable, match="WRONGPASS") as refused:
                await works(f"{url}&sentinel_password=guessed")
            assert "guessed" not in str(refused.value)
        finally:
            watching.kill()
            watching.wait()


async def test_it_is_enough_in_a_cluster_behind_tls(tmp_path: Path) -> None:
    if not binary("redis"):
        pytest.skip("no server that speaks TLS on this machine")
    certify(tmp_path)
    port, ca = free_port(), tmp_path / "ca.pem"
    tls = (
        *("--tls-port", str(port), "--bind", "127.0.0.1", "--tls-auth-clients", "no", "--tls-cluster", "yes"),
        *("--tls-cert-file", str(tmp_path / "server.pem"), "--tls-key-file", str(tmp_path / "server.key")),
        *("--tls-ca-cert-file", str(ca), "--cluster-enabled", "yes"),
    )
    with running("redis", *tls) as server, redis.Redis.from_url(server.url) as admin:
        admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        await wait_until(lambda: b"cluster_state:ok" in admin.execute_command("CLUSTER", "INFO"))
        assert admin.execute_command(*setuser())
        url = f"rediss+cluster://fairlead:CHANGE-ME@127.0.0.1:{port}?ssl_ca_certs={ca}"
        await wait_until(partial(has_worked, url))


async def has_worked(url: str) -> bool:
    """Not if a busy machine has not answered in time who the primary is."""
    with contextlib.suppress(errors.StoreUnavailable):
        await works(url)
        return True
    return False


def dry_run(client: Any, command: str) -> bytes:
    answer: bytes = client.execute_command("ACL", "DRYRUN", "fairlead", *command.split())
    return answer
