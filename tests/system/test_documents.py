"""Documents are true: what they show is run here."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    ran = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        timeout=50,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "draw for ann, fence 1\n"


def test_the_files_that_documents_point_to_are_there() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"
