"""The tables of docs/errors.md, generated from the tree of errors and the problems of the gateway.

`python -m tests.house.errors_page` writes them again.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import fairlead
from fairlead import errors
from fairlead.api import problems
from fairlead.errors import FairleadError, InvalidInput

ROOT = Path(__file__).parents[2]
PAGE, SOURCE = ROOT / "docs" / "errors.md", ROOT / "src" / "fairlead"
REFUSED_BY_ACTS = re.compile(r'types\.invalid\([^,]+, "(\w+)"')
GENERATED = re.compile(r"(?<=<!-- generated -->\n).*?(?=<!-- end of what is generated -->)", re.S)
WIDTH = 100

Kind = type[FairleadError]


def kinds(module: ModuleType) -> list[Kind]:
    """The errors that a module defines, in its order."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    return [value for value in own if inspect.isclass(value) and issubclass(value, FairleadError)]


@cache
def codes_of_fields() -> list[str]:
    """Codes that a refused field has instead of `invalid_input`."""
    found = {code for path in SOURCE.rglob("*.lua") for code in REFUSED_BY_ACTS.findall(path.read_text())}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and "InvalidInput" in ast.unparse(node.func):
                found |= {str(code.value) for code in node.args[2:3] if isinstance(code, ast.Constant)}
    return sorted(found - {InvalidInput.code})


def tables() -> Iterator[str]:
    tree: list[Kind] = [
        *(kind for kind in kinds(errors) if kind is not FairleadError),
        fairlead.NotAllSubmitted,
    ]
    answers = [kind for kind in tree if kind.http_status != 500]
    yield "## Of the state\n"
    yield "Raised in Python, and answered by a gateway with this status:\n"
    yield from _table(answers, "| code | status | in Python | meaning, and what to do |")
    codes = ", ".join(f"`{code}`" for code in codes_of_fields())
    precise = f"A refused field may have a more precise code than `invalid_input`: {codes}."
    yield "\n" + textwrap.fill(precise, WIDTH) + "\n"
    yield "## Of the request\n"
    yield "Answered by a gateway before it looks at the state:\n"
    requests = [kind for kind in kinds(problems) if issubclass(kind, problems.HttpProblem)]
    yield from _table(
        [kind for kind in requests if kind is not problems.HttpProblem],
        "| code | status | meaning, and what to do |",
    )
    yield "\n## In Python only\n"
    yield "Raised by commands, programs and handles, never answered by a gateway:\n"
    yield from _table(
        [kind for kind in tree if kind.http_status == 500], "| code | in Python | meaning, and what to do |"
    )
    yield ""


def _table(rows: list[Kind], head: str) -> Iterator[str]:
    names = [name.strip() for name in head.strip("|").split("|")]
    yield head
    yield "|" + "---|" * len(names)
    for kind in sorted(rows, key=lambda kind: (kind.http_status, kind.code)):
        public = hasattr(fairlead, kind.__name__)
        where = f"`{kind.__name__}`" if public else f"`errors.{kind.__name__}`"
        own_code = "code" in vars(kind)
        cells = {
            "code": f"`{kind.code}`" if own_code else "that of the task or job",
            "status": str(kind.http_status),
            "in Python": where,
            "meaning, and what to do": " ".join((kind.__doc__ or "").partition("\n\n")[0].split()),
        }
        yield "| " + " | ".join(cells[name] for name in names) + " |"


def page_with(text: str) -> str:
    return GENERATED.sub(lambda _: f"\n{text}\n", PAGE.read_text())


def page() -> str:
    return "\n".join(tables())


if __name__ == "__main__":
    PAGE.write_text(page_with(page()))
