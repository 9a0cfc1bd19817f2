"""Turns what was written into settings, or says which key is wrong and what is expected there."""

import contextlib
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import msgspec

from fairlead.checks import check_name
from fairlead.errors import InvalidInput, InvalidSettings
from fairlead.settings.pipelines import Stages, name_problem, read_stages
from fairlead.settings.rates import A_RATE
from fairlead.settings.sections import (
    LimitSettings,
    Positive,
    Rate,
    Section,
    ServiceSettings,
    Settings,
    Slots,
    TaskSettings,
)

Key = tuple[str, ...]
S = TypeVar("S", bound=Section)

A_LIMIT = 'a number of slots, or a rate such as { rate = "60/min", burst = 10 }'


@dataclass
class Sources:
    """Who set a key (a file, a variable, an option) and, where it came as plain text, that text."""

    names: dict[Key, str] = field(default_factory=dict)
    texts: dict[Key, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # what is written in them

    def of(self, key: Key) -> str | None:
        """Who set this key, something inside it, or what it is inside of."""
        for known, name in self.names.items():
            shared = min(len(known), len(key))
            if known[:shared] == key[:shared]:
                return name
        return None

    def place(self, key: Key) -> str | None:
        """The same, with the line where it is a file."""
        source = self.of(key)
        line = line_of(self.files[source], key) if source in self.files else None
        return f"{source}, line {line}" if line else source


def build_settings(tree: dict[str, Any], sources: Sources) -> Settings:
    return Builder(sources).section(Settings(), tree, ())


def line_of(text: str, key: Key) -> int | None:
    """Where in a file of TOML a key begins, or else the table it should be in: the parser tells no lines."""
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


class Builder:
    """Walks the tree beside the sections' types, so that every complaint can name the full key."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def section(self, default: S, written: Any, key: Key) -> S:
        kinds = {field.name: field.type for field in msgspec.structs.fields(default)}
        self._check_names(self._table(written, key), kinds, key)
        changes = {
            name: self._value(kinds[name], getattr(default, name), inner, (*key, name))
            for name, inner in written.items()
        }
        section = msgspec.structs.replace(default, **changes)
        if problem := section.problem():
            self._refuse(key, problem)
        return section

    def _value(self, kind: Any, default: Any, written: Any, key: Key) -> Any:
        if isinstance(default, Section):
            return self.section(default, written, key)
        if kind == Rate | None:
            return self._rate(written, key)
        if typing.get_origin(kind) is dict:
            inside = typing.get_args(kind)[1]
            return {
                name: self._entry(inside, inner, (*key, name))
                for name, inner in self._table(written, key).items()
            }
        return self._plain(kind, written, key)

    def _entry(self, kind: Any, written: Any, key: Key) -> Any:
        if kind in (LimitSettings, TaskSettings):
            self._check_name(key)
        if kind in (ServiceSettings, Stages) and (problem := name_problem(key[-1])):
            self._refuse(key, problem)
        if kind == LimitSettings:
            return self._limit(written, key)
        if kind == Stages:
            return self._stages(written, key)
        if isinstance(kind, type) and issubclass(kind, Section):
            return self.section(kind(), written, key)
        return self._plain(kind, written, key)

    def _plain(self, kind: Any, written: Any, key: Key) -> Any:
        _check_finite(written, lambda: self._expect(key, "a finite number", written))
        # A variable says 42 and a name is wanted: then the text was meant, not the number.
        for candidate in (written, self._sources.texts.get(key, written)):
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(candidate, kind)
        return self._expect(key, describe(kind), written)

    def _limit(self, written: Any, key: Key) -> LimitSettings:
        if not isinstance(written, dict):
            written = {"limit": written}
        self._check_names(written, ("limit", "rate", "burst", "shared"), key)
        shared = self._plain(bool, written.get("shared", False), (*key, "shared"))
        sized = {name: value for name, value in written.items() if name != "shared"}
        if sized.keys() == {"limit"}:
            limit = sized["limit"]
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
                self._expect(key, A_LIMIT, limit)
            return Slots(limit=limit, shared=shared)
        if "limit" in sized or "rate" not in sized:
            self._expect(key, A_LIMIT, written)
        return msgspec.structs.replace(self._rate(sized, key), shared=shared)

    def _rate(self, written: Any, key: Key) -> Rate:
        """A text, or a table with its burst beside it."""
        place = (*key, "rate") if isinstance(written, dict) and "rate" in written else key
        written = written if isinstance(written, dict) else {"rate": written}
        self._check_names(written, ("rate", "burst"), key)
        rate = written.get("rate", written)
        burst = self._plain(Positive | None, written.get("burst"), (*key, "burst"))
        try:
            return Rate.of(rate if isinstance(rate, str) else "", burst)
        except ValueError:
            self._expect(place, A_RATE, rate)

    def _stages(self, written: Any, key: Key) -> Stages:
        try:
            return read_stages(written)
        except ValueError as problem:
            self._refuse(key, str(problem))

    def _check_name(self, key: Key) -> None:
        try:
            check_name("name", key[-1])
        except InvalidInput as error:
            self._refuse(key, error.reason)

    def _table(self, written: Any, key: Key) -> dict[str, Any]:
        return written if isinstance(written, dict) else self._expect(key, "a table", written)

    def _check_names(self, written: dict[str, Any], known: Iterable[str], key: Key) -> None:
        known = list(known)
        for name in written:
            if name not in known:
                self._refuse((*key, name), f"unknown key; {_hint(name, known, key)}")

    def _expect(self, key: Key, expected: str, written: Any) -> NoReturn:
        self._refuse(key, f"expected {expected}, not {_shown(written)}")

    def _refuse(self, key: Key, problem: str) -> NoReturn:
        # For a complaint about all of the settings there is no key and no single source.
        place = self._sources.place(key) if key else None
        raise InvalidSettings(
            f"{'.'.join(key) or 'settings'}: {problem}" + (f" (from {place})" if place else "")
        )


def describe(kind: Any) -> str:
    """What a value of this type is, for people."""
    if kind is Any:
        return "any value"
    if typing.get_origin(kind) is typing.Annotated:
        inner, meta = typing.get_args(kind)
        if meta.le is not None:
            return f"{describe(inner)} from {meta.ge} to {meta.le}"
        bound = f" of at least {meta.ge}" if meta.gt is None else f" greater than {meta.gt}"
        return describe(inner) + bound
    if typing.get_origin(kind) is typing.Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in typing.get_args(kind))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(describe(part) for part in typing.get_args(kind) if part is not type(None))
    if typing.get_origin(kind) is list:
        return "a list of texts"
    return {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}[kind]


def _hint(name: str, known: list[str], key: Key) -> str:
    """The nearest key in the same table, else the same key of another section, else all there are."""
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.5):
        return f"did you mean {'.'.join((*key, near[0]))}?"
    settings = Settings()
    for section in settings.__struct_fields__:
        if name in getattr(getattr(settings, section), "__struct_fields__", ()):
            return f"did you mean {section}.{name}?"
    return f"known here: {', '.join(known)}"


def _check_finite(written: Any, complain: Callable[[], NoReturn]) -> None:
    if isinstance(written, float) and not math.isfinite(written):
        complain()
    inside = written.values() if isinstance(written, dict) else written if isinstance(written, list) else ()
    for inner in inside:
        _check_finite(inner, complain)


def _shown(written: Any) -> str:
    if isinstance(written, bool):
        return str(written).lower()
    return f'"{written}"' if isinstance(written, str) else str(written)
