"""Server and up raise the limit of open files at their start: a low soft limit is only a default."""

import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.open_files import WANTED, limit_of, needs_room, soft_limit
from tests.servers import Server
from tests.waiting import wait_until


@needs_room
@pytest.mark.parametrize("command", ["server", "up"])
def test_it_is_raised_and_logged(start_server: Callable[[str], Server], tmp_path: Path, command: str) -> None:
    with ExitStack() as stack:
        with soft_limit(1024):
            starting = serving(start_server("valkey").url, f"files-{command}", tmp_path, command=command)
            gateway = stack.enter_context(starting)
        assert limit_of(gateway.process.pid) == WANTED
        assert f"INFO open_files_raised limit={WANTED} before=1024" in gateway.log_text()


@needs_room
async def test_every_process_of_a_server_has_it(
    start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        with soft_limit(1024):
            starting = serving(start_server("valkey").url, "files-several", tmp_path, "--processes", "2")
            gateway = stack.enter_context(starting)
        await wait_until(lambda: len(gateway.children()) == 2)
        await wait_until(lambda: [limit_of(pid) for pid in gateway.children()] == [WANTED] * 2)


@pytest.mark.parametrize(("hard", "is_low"), [(1500, True), (4096, False)])
def test_a_low_hard_limit_is_logged(hard: int, is_low: bool) -> None:
    program = (
        "from fairlead.log.setup import set_up_logging\n"
        "from fairlead.open_files import raise_open_files\n"
        "from fairlead.settings import LogSettings\n"
        "set_up_logging(LogSettings())\n"
        "raise_open_files()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"open_files_raised limit={hard} before=1024" in ran.stderr
    assert (f"WARNING open_files_low limit={hard}" in ran.stderr) is is_low
