"""The page of all settings and the sample file, generated from the sections in src/fairlead/settings.

`python -m tests.house.settings_page` writes both again.
"""

import ast
import inspect
import json
import re
import sys
import textwrap
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fairlead.settings import NamespaceSettings, Settings
from fairlead.settings.base import Key, Section
from fairlead.settings.loading import FAMILIAR_NAMES, PREFIX
from fairlead.settings.sample import SAMPLE
from fairlead.settings.tiers import Tier, TierEntry
from fairlead.store.policy import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
GENERATED = re.compile(r"(?<=<!-- generated -->\n).*", re.S)
WIDTH = 100
NAME = "NAME"
EXAMPLES = {"tasks": "generate_image", "services": "outline", "tiers": "fast"}  # a name for the sample
POLICY = {key for setting in SETTINGS.values() for key in setting.split(" x ")}
FAMILIAR = {tuple(key.split(".")): name for name, key in FAMILIAR_NAMES.items()}


@dataclass(frozen=True)
class Entry:
    """A key of a section: what it means, and how it is written."""

    key: Key
    meaning: str
    default: str  # as TOML; empty: none
    example: str  # as TOML

    @property
    def variables(self) -> list[str]:
        own = PREFIX + "__".join(part if part == NAME else part.upper() for part in self.key)
        return [own, *([FAMILIAR[self.key]] if self.key in FAMILIAR else [])]


@dataclass(frozen=True)
class Table:
    """A table of the file with its keys, in the order of the code."""

    key: Key
    about: str
    entries: list[Entry]


def tables() -> Iterator[Table]:
    comments = comments_of(NamespaceSettings) | comments_of(Settings)
    for field in msgspec.structs.fields(Settings):
        key, default = (field.name,), getattr(Settings(), field.name)
        if isinstance(default, Section):
            yield from _tables_of(key, default)
            continue
        (_, kind) = typing.get_args(field.type)
        kind = Tier if kind == TierEntry else kind
        about, example = comments.get(field.name, ("", ""))
        if kind != NamespaceSettings and isinstance(kind, type) and issubclass(kind, Section):
            if example:
                yield Table(key, "", [_single(key, about, example)])
            yield from _tables_of((*key, NAME), kind())
        else:
            yield Table(key, "", [_single((*key, NAME), about, example)])


def _single(key: Key, about: str, example: str) -> Entry:
    """A key of a table whose names are free: the example shows the name, too."""
    name, _, value = example.partition(" = ")
    return Entry(key if key[-1] == NAME else (*key, name), about, "", value)


def _tables_of(key: Key, section: Section) -> Iterator[Table]:
    comments, entries, inner = comments_of(type(section)), [], {}
    for name in section.__struct_fields__:
        default = getattr(section, name)
        if isinstance(default, Section):
            inner[name] = default
            continue
        meaning, example = comments[name]
        written = "" if default in (None, "", [], {}) else toml(default)
        entries.append(Entry((*key, name), meaning, written, example or written))
    if entries:
        yield Table(key, " ".join((inspect.getdoc(section) or "").split()), entries)
    for name, default in inner.items():
        yield from _tables_of((*key, name), default)


def comments_of(section: type[Section]) -> dict[str, tuple[str, str]]:
    """The meaning and the example of each field: its comment that begins with `#:`."""
    lines = inspect.getsource(section).splitlines()
    (tree,) = ast.parse(textwrap.dedent("\n".join(lines))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            number = node.lineno - 2
            above: list[str] = []
            while (line := lines[number].strip()).startswith("#:"):
                above.insert(0, line.removeprefix("#:").strip())
                number -= 1
            if above:
                meaning, _, example = " ".join(above).partition("Example: ")
                found[node.target.id] = (meaning.strip(), example.strip())
    return found


def toml(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return json.dumps(value)


def page() -> str:
    return "\n".join(line for table in tables() for line in _page_of(table))


def _page_of(table: Table) -> Iterator[str]:
    yield f"## [{'.'.join(table.key)}]"
    yield ""
    if table.about:
        yield from _wrapped(table.about)
        yield ""
    yield "| key | default | environment variable | meaning | example |"
    yield "|---|---|---|---|---|"
    for entry in table.entries:
        name = f"`{'.'.join(entry.key[len(table.key) :])}`"
        if ".".join(entry.key) in POLICY:
            name += " (policy)"
        default = f"`{entry.default}`" if entry.default else "none"
        variables = ", ".join(f"`{name}`" for name in entry.variables)
        yield f"| {name} | {default} | {variables} | {entry.meaning} | `{entry.example}` |"
    yield ""


def sample() -> str:
    """The file: prose begins with "# ", and what can be set with "#" alone."""
    head = (
        'Every setting of Fairlead, with its default or an example. To set a key, remove the "#" before it. '
        "Options of a command override environment variables, which override this file. "
        "`fairlead config check` shows what is in effect, and what set it."
    )
    return "\n".join([*_comment(head), *(line for table in tables() for line in _sample_of(table)), ""])


def _sample_of(table: Table) -> Iterator[str]:
    *outer, last = table.key
    yield ""
    if last == NAME:
        name = EXAMPLES[outer[0]]
        yield from _comment(table.about.replace("NAME is", f"{name} is"))
        yield f"#[{'.'.join((*outer, name))}]"
    else:
        yield from _comment(table.about)
        yield f"[{'.'.join(table.key)}]"
    for entry in table.entries:
        yield from _comment(entry.meaning + ("" if entry.default else " An example:"))
        yield f"#{_sample_name(entry)} = {entry.example}"


def _sample_name(entry: Entry) -> str:
    if entry.key[-1] != NAME:
        return entry.key[-1]
    comments = comments_of(NamespaceSettings) | comments_of(Settings)
    name, _, _ = comments[entry.key[0]][1].partition(" = ")
    return name


def _comment(text: str) -> list[str]:
    return _wrapped(text, "# ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def page_with(generated: str) -> str:
    return GENERATED.sub(lambda _: f"\n{generated}", PAGE.read_text())


if __name__ == "__main__":
    SAMPLE.write_text(sample())
    PAGE.write_text(page_with(page()))
    sys.stdout.write(f"{SAMPLE}\n{PAGE}\n")
