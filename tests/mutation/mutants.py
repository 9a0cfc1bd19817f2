"""Faults to plant in the source: one comparison, word or number changed, or one call left out."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from random import Random

import msgspec

#: What a word or sign becomes. A fault is small: most tests must not notice it.
FLIPS = {
    "==": "!=",
    "!=": "==",
    "~=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
    "True": "False",
    "False": "True",
    "true": "false",
    "false": "true",
}
STATES = {
    "SCHEDULED": "QUEUED",
    "QUEUED": "CANCELLED",
    "EXECUTING": "QUEUED",
    "COMPLETED": "FAILED",
    "FAILED": "COMPLETED",
    "CANCELLED": "EXECUTING",
}
LUA_FLIPS = FLIPS | {"==": "~="}
LUA_TOKEN = re.compile(r"--[^\n]*|\"[^\"\n]*\"|'[^'\n]*'|[=~<>]=|\.\.|[A-Za-z_]\w*|\d[\w.]*|\S")
LUA_CALL = re.compile(r"(?:if [^\n]* then )?((?:[\w.]+)\([^\n]*\))(?: end)?")


class Mutant(msgspec.Struct, frozen=True):
    """One fault. It is found again by the text of its line, which changes less often than its number."""

    kind: str  # flip, number, or drop
    file: str  # below src/
    line: str
    nth: int  # of the lines with this text
    column: int
    old: str
    new: str

    def planted(self, text: str) -> str | None:
        """The file with the fault; None when its line is there no more."""
        lines = text.splitlines(keepends=True)
        same = [number for number, line in enumerate(lines) if line.rstrip("\n") == self.line]
        if self.nth >= len(same):
            return None
        end = self.column + len(self.old)
        lines[same[self.nth]] = self.line[: self.column] + self.new + self.line[end:] + "\n"
        return "".join(lines)


@dataclass(frozen=True)
class Site:
    kind: str
    row: int
    column: int
    old: str
    new: str


def mutants(source: Path, file: str) -> list[Mutant]:
    """Every fault that can be planted in this file."""
    text = (source / file).read_text()
    lines = text.splitlines()
    found = []
    for site in lua_sites(lines) if file.endswith(".lua") else python_sites(text):
        line = lines[site.row]
        nth = sum(other == line for other in lines[: site.row])
        found.append(Mutant(site.kind, file, line, nth, site.column, site.old, site.new))
    return found


def sample(source: Path, files: list[str], seed: int, count: int) -> list[Mutant]:
    """Of each kind the same number, where there are enough; the same ones for the same source and seed."""
    everything = [mutant for file in files for mutant in mutants(source, file)]
    chance = Random(seed)
    kinds = []
    for kind in ("flip", "drop", "number"):
        those = [mutant for mutant in everything if mutant.kind == kind]
        chance.shuffle(those)
        kinds.append(those)
    return [mutant for mutant in chain(*zip_longest(*kinds)) if mutant][:count]


def lua_sites(lines: list[str]) -> Iterator[Site]:
    for row, line in enumerate(lines):
        call = LUA_CALL.fullmatch(line.partition(" --")[0].strip())
        if call and call[1].count("(") == call[1].count(")"):
            yield Site("drop", row, line.index(call[1]), call[1], "")
        for token in LUA_TOKEN.finditer(line):
            if token[0].startswith("--"):
                break
            yield from _flip(row, token.start(), token[0], LUA_FLIPS)


def python_sites(text: str) -> Iterator[Site]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    fixed = _rows_of_layout(text)
    for before, token in pairwise(tokens):
        row, column = token.start[0] - 1, token.start[1]
        is_sign = token.string in "+-" and before.type == tokenize.OP and before.string not in ")]}"
        if row in fixed or is_sign or token.type not in (tokenize.OP, tokenize.NAME, tokenize.NUMBER):
            continue
        yield from _flip(row, column, token.string, FLIPS | STATES if before.string == "." else FLIPS)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.lineno == node.end_lineno:
            old = ast.get_source_segment(text, node) or ""
            yield Site("drop", node.lineno - 1, node.col_offset, old, "pass")


def _rows_of_layout(text: str) -> set[int]:
    """`slots=True` and `frozen=True` say how a class is stored, not what it does."""
    rows: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            rows.add(node.lineno - 1)
        for decorator in getattr(node, "decorator_list", []):
            rows |= set(range(decorator.lineno - 1, decorator.end_lineno))
    return rows


def _flip(row: int, column: int, word: str, flips: dict[str, str]) -> Iterator[Site]:
    if word in flips:
        yield Site("flip", row, column, word, flips[word])
    elif re.fullmatch(r"\d[\d_]*", word):
        yield Site("number", row, column, word, str(int(word) + 1))
