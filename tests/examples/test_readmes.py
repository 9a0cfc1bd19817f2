"""Every example runs as its README prints it: from a copy of its folder, without a pause in between."""

import re
import shutil
from pathlib import Path

import pytest

from tests.pages import PORT, Page
from tests.programs import need, need_asymptote
from tests.servers import free_port
from tests.sessions import differences, played, shown
from tests.wheel import Wheel

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = [Page(f"examples/{page.parent.name}/README.md") for page in sorted(EXAMPLES.glob("*/README.md"))]
#: Those whose README has a session; docs of the others say how they are run.
WITH_SESSION = [Path(page.name).parent.name for page in PAGES if page.blocks]
#: Files that an example writes when somebody runs it in place.
MADE = ("*.log", "*.txt")
#: Values that differ each time: seconds after the first call, and the minute of a cron.
PASSING = re.compile(r"\d+\.\d(?= s:)|\d\d:\d\d$", re.M)
#: Installed on every machine of a developer, but not by us.
PROGRAMS = ("curl", "jq", "node")


def copy_of(example: str, home: Path) -> tuple[Path, dict[str, str]]:
    """The folder of an example on free ports, and the environment in which it finds them."""
    folder = home / example
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", *MADE))
    texts = {file: file.read_text() for file in folder.rglob("*") if file.is_file()}
    ports = {port: str(free_port()) for text in texts.values() for port in PORT.findall(text)}
    for file, text in texts.items():
        file.write_text(PORT.sub(lambda found: ports[found[0]], text))
    return folder, {"FAIRLEAD_SERVER__PORT": ports.get("8000", "0")}


def same_each_time(text: str) -> str:
    return PASSING.sub("<time>", shown(text))


@pytest.mark.timeout(150)
@pytest.mark.parametrize("example", WITH_SESSION)
def test_an_example_does_what_its_readme_shows(example: str, wheel: Wheel, tmp_path: Path) -> None:
    folder, env = copy_of(example, tmp_path)
    page = Page(f"examples/{example}/README.md")
    page.text = (folder / "README.md").read_text()
    text = "".join(file.read_text() for file in folder.rglob("*") if file.is_file())
    need(*(program for program in PROGRAMS if re.search(rf"\b{program}\b", text)))
    if example == "asymptote":
        need_asymptote()
    steps, path = page.steps(tmp_path), wheel.path(*page.packages)
    printed = played([command for command, _ in steps], tmp_path, path, folder=folder, env=env, timeout=120)
    wrong = differences(steps, printed, same_each_time)
    assert not wrong, wrong
    if example == "rate_limited_api":
        called_at = [float(seconds) for seconds in re.findall(r"^([\d.]+) s:", printed[1], re.M)]
        assert all(at > 0.5 * n - 0.3 for n, at in enumerate(called_at)), called_at
