"""Private real servers for the tests: the wheel's Valkey, Debian's Redis, and Valkey in cluster mode."""

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from fairlead.store.engine.process import find_server

KINDS = ("valkey", "redis", "cluster")

#: Below the ephemeral ports, any of which may be taken between the choice and the use.
PORTS = range(10_000, 20_000)
BUS = 10_000  # above the port of a cluster

chance = random.SystemRandom()  # that of the tests has the same seed in all their processes
chosen: set[int] = set()


@dataclass(frozen=True)
class Server:
    kind: str
    url: str
    process: subprocess.Popen[bytes]


def binary(kind: str) -> str | None:
    return shutil.which("redis-server") if kind == "redis" else str(find_server({}))


@contextlib.contextmanager
def running(kind: str, *options: str) -> Iterator[Server]:
    """A server of this kind on a unix socket; a cluster of one node on a port, which its bus needs."""
    program = binary(kind)
    assert program, f"no server for {kind}"
    folder = Path(tempfile.mkdtemp(prefix="fl-test-"))
    command = [program, "--save", "", "--dir", str(folder), "--logfile", str(folder / "log")]
    if kind == "cluster":
        port = free_port()
        url = f"redis://127.0.0.1:{port}"
        command += ["--port", str(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes"]
    else:
        url = f"unix://{folder}/s"
        command += ["--port", "0", "--unixsocket", f"{folder}/s"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with redis.Redis.from_url(url) as client:
            _wait_until_ready(client, kind)
        yield Server(kind, url, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    while True:
        port = chance.choice(PORTS)
        if port not in chosen and _is_free(port) and _is_free(port + BUS):
            chosen.add(port)
            return port


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _wait_until_ready(client: Any, kind: str) -> None:
    deadline = time.monotonic() + 20
    sent = False
    while time.monotonic() < deadline:
        with contextlib.suppress(redis.RedisError, OSError):
            client.ping()
            if kind != "cluster":
                return
            if not sent:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
                sent = True
            if b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"):
                return
        time.sleep(0.01)
    raise AssertionError(f"the {kind} server did not get ready")
