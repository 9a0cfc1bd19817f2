"""Pages as a reader uses them: the files that they show, and their commands and pieces of code in order.

Everything happens in an empty folder, with the environment of a user who has installed the wheel. What is
printed is compared with the page.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.servers import free_port
from tests.sessions import Step, differences, played, sessions
from tests.wheel import ROOT, Wheel

SNIPPET, NOTEBOOK = (Path(__file__).with_name(name) for name in ("snippet.py", "notebook.py"))
BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.M | re.S)
NAME = re.compile(r"\A# ([\w./-]+\.\w+)(, continued)?\n")
PORT = re.compile(r"\b(800[0-3]|8080|8100|900\d)\b")  # of a page, which may be taken on this machine

#: Blocks that no test runs: the page, how they begin, and why.
NOT_RUN = (
    ("README.md", "make run", "the tests are one of these commands, and the other one does not end"),
    ("CONTRIBUTING.md", "make install", "they run these tests"),
    ("CONTRIBUTING.md", ".venv/bin/uv export", "it writes the pins of this repository"),
    ("docs/performance.md", ".venv/bin/python -m benchmarks breadth", "it takes minutes"),
    (
        "docs/performance.md",
        ".venv/bin/python -m benchmarks peers",
        "it takes an hour, and installs ten queues",
    ),
    ("docs/migrating.md", "app = Celery", "the code of another queue"),
    ("docs/migrating.md", "queue = Queue", "the code of another queue"),
    ("docs/migrating.md", "const queue", "the code of another queue"),
    ("docs/deploying.md", "FROM python", "it needs a container runtime"),
    ("docs/deploying.md", "useradd", "it needs root and systemd"),
    ("docs/deploying.md", "kubectl", "it needs a cluster"),
    ("examples/ai_gateway/README.md", "docker compose", "it needs a container runtime"),
    (
        "examples/asymptote/README.md",
        "apt-get install",
        "it needs root; scripts/test-asymptote installs the same",
    ),
)
#: Blocks that another test runs, or compares with the code: the page, how they begin, and the test.
ELSEWHERE = (
    ("ARCHITECTURE.md", "flowchart", "tests/house/test_architecture.py"),
    ("CONTRIBUTING.md", "src/fairlead/model/task.py", "tests/api/test_adding_a_field.py"),
    ("docs/states.md", "stateDiagram", "tests/unit/test_states.py"),
    ("docs/engines.md", "redis-cli ACL SETUSER", "tests/faults/test_least_user.py"),
    ("docs/monitoring.md", "2026-11-16T14:03:07.412Z INFO", "tests/api/test_transition_log.py"),
    ("docs/operating.md", "2026-11-16T14:03:07.412Z WARNING", "tests/unit/test_log.py"),
    ("docs/operating.md", '{"time"', "tests/unit/test_log.py"),
    ("docs/monitoring.md", "2026-11-16T14:03:07.412Z INFO", "tests/api/test_transition_log.py"),
    ("examples/ai_gateway/README.md", "cd examples", "tests/system/test_ai_gateway.py"),
)


@dataclass(frozen=True)
class Block:
    kind: str  # what is written behind the fence
    text: str

    @property
    def name(self) -> str | None:
        """Of the file that it shows; its first line says so."""
        return found[1] if (found := NAME.match(self.text)) else None

    @property
    def installs_fairlead(self) -> bool:
        return self.kind == "sh" and "pip install fairlead\n" in self.text

    @property
    def is_program(self) -> bool:
        """It keeps running in a terminal of its own."""
        return bool(re.fullmatch(r"fairlead (worker|server|up)\b[^\n&]*\n", self.text))


class Page:
    def __init__(self, name: str) -> None:
        self.name = name
        self.text = (ROOT / name).read_text()

    def on_free_ports(self) -> "Page":
        """The same page with ports that are free here."""
        page = Page(self.name)
        ports = {port: str(free_port()) for port in sorted(set(PORT.findall(self.text)))}
        page.text = PORT.sub(lambda found: ports[found[0]], self.text)
        page.port = ports.get("8000", "0")
        return page

    port = "8000"  # of the gateway

    @cached_property
    def blocks(self) -> list[Block]:
        """All that are run."""
        return [block for block in all_blocks(self.text) if not is_left_out(self.name, block)]

    @property
    def install(self) -> Block | None:
        """The block that makes an environment and installs Fairlead."""
        return next((block for block in self.blocks if block.installs_fairlead), None)

    @property
    def packages(self) -> list[str]:
        """What the page installs beside Fairlead."""
        lines = [line for block in self.blocks if block.kind == "sh" for line in block.text.splitlines()]
        return sorted(
            {word for line in lines if line.startswith("pip install ") for word in line.split()[2:]}
        )

    def write_files(self, folder: Path) -> None:
        for block in self.blocks:
            if block.name:
                with (folder / block.name).open("a") as file:
                    file.write(block.text)

    def steps(self, scratch: Path) -> list[Step]:
        """Everything that a reader does, in order. Pieces of code are run from files in `scratch`."""
        return [step for number, _ in enumerate(self.blocks) for step in self._steps_of(number, scratch)]

    def _is_alone(self, block: Block) -> bool:
        """No other block uses the file that it shows."""
        stem = Path(block.name or "").stem
        return not any(re.search(rf"\b{stem}\b", other.text) for other in self.blocks if other is not block)

    def _steps_of(self, number: int, scratch: Path) -> Iterator[Step]:
        block = self.blocks[number]
        file = scratch / f"{self.name.replace('/', '-')}.{number}.{block.kind}"
        if block.name:  # other blocks use the file, or it is a program
            if block.kind == "python" and self._is_alone(block):
                yield f"python {block.name}", ""
            return
        match block.kind:
            case "console":
                yield from sessions(block.text)
            case "sh":
                yield from _commands(block, file)
            case "python":
                file.write_text(block.text)
                follows = self.blocks[number + 1 : number + 2]
                shown = follows[0].text if follows and follows[0].kind == "text" else ""
                runner = NOTEBOOK if re.match(r"# (a|another) cell\n", block.text) else SNIPPET
                yield f"python {runner} {file}", shown
            case "text" if self.blocks[number - 1].kind == "python" and not self.blocks[number - 1].name:
                pass  # what the piece of code prints
            case "toml":
                file.write_text(block.text)
                yield f"fairlead config check --config {file} > /dev/null", ""
            case "json":
                json.loads(block.text)
            case _:
                raise AssertionError(f"{self.name}: nothing runs this block:\n{block.kind}\n{block.text}")


def _commands(block: Block, log: Path) -> Iterator[Step]:
    """Commands without their output."""
    if block.installs_fairlead or block.text.startswith("pip install "):
        return  # done before: `install`, `packages`
    if block.is_program:
        log.touch()
        yield f"{block.text.strip()} > {log} 2>&1 &\n{started(block.text, log)}", ""
    else:
        yield f"(set -e\n{block.text}) > {log} 2>&1 || {{ echo It failed:; cat {log}; }}", ""


def all_blocks(text: str) -> list[Block]:
    return [Block(kind, block) for _, kind, block in BLOCK.findall(text)]


def is_left_out(page: str, block: Block) -> bool:
    return any(page == name and block.text.startswith(start) for name, start, _ in (*NOT_RUN, *ELSEWHERE))


def started(command: str, log: Path | str) -> str:
    """Waits as a reader does who looks at the other terminal, until the program has started or ended."""
    if " worker " in command:
        processes = re.search(r"--processes (\d+)", command)
        is_there = f"[ $(grep -cs worker_started {log}) -ge {processes[1] if processes else 1} ]"
    else:
        is_there = f"grep -qs 'listens at' {log}"
    return f"while kill -0 $! 2> /dev/null && ! {is_there}; do sleep 0.05; done"


def play(
    page: Page,
    installed: Wheel | str,
    home: Path,
    *,
    between: Callable[[str], str] = lambda command: command,
    read: Callable[[str], str] | None = None,
    columns: int | None = None,
    timeout: float = 230,
) -> None:
    """Does what the page says, in the empty folder `home`.

    `installed`: the wheel, or the PATH of an environment that has it. `between` adds what a reader waits for.
    """
    page = page.on_free_ports()
    page.write_files(home)
    scratch = home.with_name(f"{home.name}-scratch")
    scratch.mkdir()
    steps = page.steps(scratch)
    commands = [between(command) for command, _ in steps]
    env = {"FAIRLEAD_SERVER__PORT": page.port}
    path = installed if isinstance(installed, str) else installed.path(*page.packages)
    wrong = differences(steps, played(commands, home, path, env=env, timeout=timeout, columns=columns), read)
    assert not wrong, wrong
