"""Documents are true: what they show is run here."""

import asyncio
import re
import shlex
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.commands import Ended, ended
from tests.workers import WorkerLauncher

ROOT = Path(__file__).parents[2]


async def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """As a new user does it: the file, the worker, and the commands beside it."""
    readme = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", readme, re.S)
    shells = re.findall(r"```sh\n(fairlead .*?)```", readme, re.S)
    (tmp_path / "app.py").write_text("\n\n".join(examples))
    worker, *others = [line.partition("#")[0].strip() for line in "".join(shells).splitlines()]
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}

    async def run(line: str) -> Ended:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(line), env=environment, cwd=tmp_path, stdout=PIPE, stderr=PIPE
        )
        return await ended(process)

    *command, app = shlex.split(worker)
    assert command == ["fairlead", "worker"]
    async with WorkerLauncher(tmp_path, lambda: ()).workers(app) as running:
        said = [await run(line) for line in others]
        assert await running.end() == 0
    assert [one.code for one in said] == [0, 0, 0], [one.err for one in said]
    assert said[0].out == "a picture of a robot\n"
    assert '"a picture of a cat"' in said[1].out
    assert '"a picture of a city at night"' in said[2].out


def sections_of(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_files_and_sections_that_documents_point_to_are_there() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]:
        for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name} points to {file}"
            assert not anchor or anchor in sections_of(target), f"{page.name} points to {file}#{anchor}"
