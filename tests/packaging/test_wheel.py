"""The wheel alone, in a fresh environment of every supported Python that this machine has."""

import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from asyncio.subprocess import PIPE
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import fairlead
from tests.wheel import ROOT, Wheel, uv

APP = """\
from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def greet(name: str) -> str:
    return f"Hello, {name}!"
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def python(minor: int) -> Path | None:
    """An interpreter of this version: the present one, one of the PATH, or one of pyenv."""
    candidates = [Path(sys.executable)] if minor == sys.version_info.minor else []
    candidates += map(Path, filter(None, [shutil.which(f"python3.{minor}")]))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(pyenv.glob(f"3.{minor}.*/bin/python"), reverse=True)
    return next(filter(_works, candidates), None)


def _works(python: Path) -> bool:
    """pyenv puts a shim into the PATH for versions that are not selected: it only prints an error."""
    return subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0


@pytest.mark.parametrize("minor", [11, 12, 13])
async def test_it_installs_and_runs_without_the_repository(minor: int, wheel: Wheel, tmp_path: Path) -> None:
    if not (interpreter := python(minor)):
        pytest.skip(f"no Python 3.{minor} on this machine")
    home, folder = tmp_path / "env", tmp_path / "empty"
    folder.mkdir()
    uv("venv", "--quiet", "--python", interpreter, home)
    uv(
        "pip",
        "install",
        "--quiet",
        "--python",
        home / "bin/python",
        "-c",
        ROOT / "constraints.txt",
        wheel.file,
    )
    environment = {"HOME": str(tmp_path), "PATH": f"{home / 'bin'}:/usr/bin:/bin"}

    async def start(*command: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=folder, stdout=PIPE, stderr=PIPE
        )

    async def run(*command: str) -> str:
        process = await start(*command)
        out, problem = await process.communicate()
        assert process.returncode == 0, problem.decode()
        return out.decode()

    assert await run("fairlead", "--version") == f"{fairlead.__version__}\n"
    (folder / "app.py").write_text(APP)
    worker = await start("fairlead", "worker", "app:fl")
    try:
        assert "Hello, Ann!" in await run("fairlead", "submit", "greet", "--param", "name=Ann", "--wait")
    finally:
        worker.terminate()
        await worker.communicate()
    assert worker.returncode == 0


def test_it_contains_everything_that_runs_and_nothing_else(wheel: Wheel) -> None:
    files = set(zipfile.ZipFile(wheel.file).namelist())
    source = [
        path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    expected = {str(path.relative_to(ROOT / "src")) for path in source}
    others = {file for file in files if not file.startswith(f"fairlead-{fairlead.__version__}.dist-info/")}
    assert others == expected
    assert "fairlead/py.typed" in files


def test_its_metadata_says_what_the_project_says(wheel: Wheel) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (name,) = [file for file in zipfile.ZipFile(wheel.file).namelist() if file.endswith("/METADATA")]
    metadata: Message = Parser().parsestr(zipfile.ZipFile(wheel.file).read(name).decode())
    assert metadata["Version"] == fairlead.__version__
    assert metadata["Requires-Python"] == project["requires-python"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text().strip()
    versions = [line.rpartition("3.")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert [*map(int, versions)] == [*range(11, 11 + len(versions))], "every version from the first supported"


def test_the_source_contains_the_licence_and_the_pages(wheel: Wheel) -> None:
    (sdist,) = wheel.dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "docs/http.md", "src/fairlead/py.typed"} <= names
