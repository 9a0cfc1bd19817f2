"""What docs/tasks.md shows is run here, as a user would run it."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def run(*command: str, folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)},
        cwd=folder,
        timeout=50,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_every_example_runs(tmp_path: Path) -> None:
    """`async with fl:` is the same with a worker beside it, on a server that is gone afterwards."""
    app, *others = examples()
    assert app.startswith("# tasks.py")
    (tmp_path / "tasks.py").write_text(app)
    shown = "\n".join(other for other in others if not other.startswith("# test_tasks.py"))
    shown = shown.replace("async with fl", "async with private(fl), fl.worker()")
    main = "import asyncio\nfrom fairlead.testing import private\nfrom tasks import *\n\nasync def main():\n"
    main += textwrap.indent(shown, "    ") + "\n\nasyncio.run(main())\n"
    (tmp_path / "main.py").write_text(main)
    said = run("-W", "error", "main.py", folder=tmp_path)
    assert re.fullmatch(r"{'frame': 0}\n{'frame': 1}\n{'frame': 2}\nmine, with fence \d+\n", said), said


def test_the_example_of_tests_passes(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(examples()[0])
    (tests,) = [one for one in examples() if one.startswith("# test_tasks.py")]
    (tmp_path / "test_tasks.py").write_text(tests)
    settings = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    options = ["-q", "-W", "error", "-p", "no:valkey", *(f"--override-ini={setting}" for setting in settings)]
    assert "4 passed" in run("-m", "pytest", *options, "test_tasks.py", folder=tmp_path)
