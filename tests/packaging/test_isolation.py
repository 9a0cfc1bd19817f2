"""What pages run sees the wheel and what the page installs, and nothing of this repository or its tools."""

from pathlib import Path

import pytest

from tests.sessions import played
from tests.waiting import wait_until
from tests.wheel import Wheel

PROBE = """\
from importlib.util import find_spec

import fairlead
from fairlead import Fairlead

print(fairlead.__file__, [name for name in ("tests", "pytest", "flask") if find_spec(name)])
fl = Fairlead()
"""


@pytest.mark.long
def test_programs_and_commands_use_what_is_installed(wheel: Wheel, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    # a command that imports the app, and refuses because there is no such attribute
    commands = ["python probe.py", "fairlead worker probe:missing 2> refused.txt", "cat refused.txt"]
    by_program, by_command, refused = played(commands, tmp_path, wheel.path())
    package = next((wheel.environment() / "lib").glob("python*/site-packages/fairlead/__init__.py"))
    assert by_program == by_command == f"{package} []\n"
    assert "probe has no 'missing'" in refused


@pytest.mark.long
def test_packages_of_a_page_are_there(wheel: Wheel, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    (by_program,) = played(["python probe.py"], tmp_path, wheel.path("pytest"))
    assert by_program.endswith("['pytest']\n")


@pytest.mark.long
async def test_a_page_that_takes_too_long_leaves_nothing_behind(wheel: Wheel, tmp_path: Path) -> None:
    own_pid = 'import os\n\nopen("pid.txt", "w").write(str(os.getpid()))\n'
    (tmp_path / "probe.py").write_text(PROBE + own_pid)
    begins = "until [ -s pid.txt ]; do sleep 0.1; done; echo it waits"
    commands = ["fairlead worker probe:fl > worker.log 2>&1 &", begins, "sleep 600"]
    with pytest.raises(AssertionError, match="it waits"):
        played(commands, tmp_path, wheel.path(), timeout=20)
    stat = Path("/proc", (tmp_path / "pid.txt").read_text(), "stat")
    # one that has ended may still be listed, as a zombie
    await wait_until(lambda: not stat.exists() or stat.read_text().rpartition(") ")[2][0] in "ZX")
