"""What docs/pipelines.md shows of jobs in Python is run here, as a user would run it."""

import re
import textwrap
from pathlib import Path

from tests.system.test_tasks_page import run

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"


def test_the_example_runs(tmp_path: Path) -> None:
    """`async with fl:` is the same with a worker beside it, on a server that is gone afterwards."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (app,) = [one for one in examples if one.startswith("# story.py")]
    (shown,) = [one for one in examples if one.startswith("async with fl:")]
    (tmp_path / "story.py").write_text(app)
    shown = shown.replace("async with fl", "async with private(fl), fl.worker()")
    main = "import asyncio\nfrom fairlead.testing import private\nfrom story import fl\n\nasync def main():\n"
    main += textwrap.indent(shown, "    ") + "\n\nasyncio.run(main())\n"
    (tmp_path / "main.py").write_text(main)
    said = run("-W", "error", "main.py", folder=tmp_path).splitlines()
    assert said[0] == "2 pictures, story.en.ogg"
    assert said[-1] == "True"
    steps = ["outline (1/4)", "draw (2/4)", "narrate (3/4)", "bind (4/4)"]
    assert sorted(said[1:-1]) == sorted(f"Completed {step}" for step in steps)
