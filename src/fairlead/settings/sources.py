"""What set a key: which file and line, which variable, which option."""

import contextlib
import tomllib
from dataclasses import dataclass, field
from typing import Any

from fairlead.settings.base import Key


@dataclass
class Sources:
    """What set a key (a file, a variable, an option) and, where it came as plain text, that text."""

    names: dict[Key, str] = field(default_factory=dict)
    texts: dict[Key, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # what is written in them
    empty: dict[Key, str] = field(default_factory=dict)  # tables without a key, which set nothing
    table: Key = ()  # the one that all keys are in

    def of(self, key: Key) -> str | None:
        """What set this key, else something inside it, else a value that it is part of."""
        if key in self.names:
            return self.names[key]
        for known, name in reversed(self.names.items()):  # the latest, which overrides the others
            shared = min(len(known), len(key))
            if known[:shared] == key[:shared]:
                return name
        return None

    def below(self, table: Key) -> "Sources":
        """Of what is in this table, as if that were all."""

        def inside(known: dict[Key, str]) -> dict[Key, str]:
            return {key[len(table) :]: value for key, value in known.items() if key[: len(table)] == table}

        return Sources(inside(self.names), inside(self.texts), self.files, inside(self.empty), table)

    def of_namespace(self, name: str) -> "Sources":
        """Of the settings that a process in this namespace works with."""
        own = self.below(("namespaces", name))
        return own if own.names or own.empty else self

    def place(self, key: Key) -> str | None:
        """The same, with the line where it is a file."""
        source = self.of(key) or self.empty.get(key)
        line = line_of(self.files[source], (*self.table, *key)) if source in self.files else None
        return f"{source}, line {line}" if line else source


def line_of(text: str, key: Key) -> int | None:
    """The line of a TOML file where a key begins, or else its table: the parser does not report lines."""
    lines = text.split("\n")
    for known in (key[:length] for length in range(len(key), 0, -1)):
        for number, line in enumerate(lines, 1):
            if known[-1] in line and _holds(_parsed_until(lines, number), known):
                return number
    return None


def _parsed_until(lines: list[str], number: int) -> Any:
    """What the file says up to this line; a value of several lines is read to its end."""
    for end in range(number, len(lines) + 1):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads("\n".join(lines[:end]))
    return {}


def _holds(tree: Any, key: Key) -> bool:
    for name in key:
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = tree[name]
    return True
