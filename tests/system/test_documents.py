"""Documents are true: what they show is run here."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """As a new user does it: the file, the worker, and the commands beside it."""
    readme = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", readme, re.S)
    shells = re.findall(r"```sh\n(fairlead .*?)```", readme, re.S)
    (tmp_path / "app.py").write_text("\n\n".join(examples))
    worker, *others = [line.partition("#")[0].strip() for line in "".join(shells).splitlines()]
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    with subprocess.Popen(shlex.split(worker), env=environment, cwd=tmp_path) as running:
        try:
            said = [
                subprocess.run(
                    shlex.split(line),
                    env=environment,
                    cwd=tmp_path,
                    timeout=40,
                    capture_output=True,
                    text=True,
                )
                for line in others
            ]
        finally:
            running.terminate()
    assert [one.returncode for one in said] == [0, 0, 0], [one.stderr for one in said]
    assert said[0].stdout == "a picture of a robot\n"
    assert '"a picture of a cat"' in said[1].stdout
    assert '"a picture of a city at night"' in said[2].stdout
    assert running.returncode == 0


def test_the_files_that_documents_point_to_are_there() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"
