"""Turns what was written into settings, or says which key is wrong and what is expected there.

msgspec converts each value. The walk along the sections' types does what it cannot: it keeps the defaults of
a section that is written in part, and it knows the full key of a wrong value, also in a table of free names.
"""

import contextlib
import math
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta

from fairlead.checks import MOST_UNITS, check_name, nearest
from fairlead.errors import InvalidInput, InvalidSettings
from fairlead.settings import (
    LimitSettings,
    NamespaceSettings,
    Rate,
    ServiceSettings,
    Settings,
    Slots,
    TaskSettings,
)
from fairlead.settings.base import Key, Positive, Problem, Section
from fairlead.settings.pipelines import Stages, name_problem, read_stages
from fairlead.settings.processes import A_NAMESPACE, NAMESPACE
from fairlead.settings.rates import A_RATE, RateText
from fairlead.settings.sources import Sources
from fairlead.settings.tiers import INTERACTIVE, VICTIM, Tier, TierEntry, Victim

S = TypeVar("S", bound=Section)

A_LIMIT = 'a number of slots, or a rate such as { rate = "60/min", burst = 10 }'
MOST_NUMBER = 10**12  # more is nonsense, and a thousand times as much would not fit where the store keeps it
SlotCount = Annotated[int, Meta(ge=0, le=MOST_UNITS, description=A_LIMIT)]


class RateTable(Section, frozen=True):
    """A rate as a table."""

    rate: RateText | None = None
    burst: Positive | None = None


class LimitTable(RateTable, frozen=True):
    """A limit as a table."""

    limit: SlotCount | None = None
    shared: bool = False


class Builder:
    """Builds sections from what was written, key by key."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def section(self, default: S, written: Any, key: Key) -> S:
        kinds = {field.name: field.type for field in msgspec.structs.fields(default)}
        changes = {}
        for name, inner in self._table(written, key).items():
            if name not in kinds:
                self._refuse((*key, name), f"unknown key; {_hint(name, list(kinds), key)}")
            changes[name] = self._value(kinds[name], getattr(default, name), inner, (*key, name))
        section = msgspec.structs.replace(default, **changes)
        if problem := section.problem():
            self._refuse_section(key, problem)
        return section

    def _value(self, kind: Any, default: Any, written: Any, key: Key) -> Any:
        if isinstance(default, Section):
            return self.section(default, written, key)
        if kind == Rate | None:
            return self._rate(written, key)
        if kind == LimitSettings:
            return self._limit(written, key)
        if kind == Stages:
            return self._stages(written, key)
        if kind == TierEntry:
            is_tier = key[-1] != VICTIM
            return self.section(Tier(), written, key) if is_tier else self._plain(Victim, written, key)
        if typing.get_origin(kind) is dict:
            return self._entries(typing.get_args(kind)[1], written, key)
        return self._plain(kind, written, key)

    def _entries(self, kind: Any, written: Any, key: Key) -> dict[str, Any]:
        default = kind() if isinstance(kind, type) and issubclass(kind, Section) else None
        entries = {}
        for name, inner in self._table(written, key).items():
            if problem := _name_problem(kind, name):
                self._refuse((*key, name), problem)
            entries[name] = self._value(kind, default, inner, (*key, name))
        return entries

    def _plain(self, kind: Any, written: Any, key: Key) -> Any:
        if not _all_numbers(math.isfinite, written):
            self._expect(key, "a finite number", written)
        if not _all_numbers(_is_small, written):
            self._expect(key, f"a number of at most {MOST_NUMBER}", written)
        # A variable says 42 and a name is wanted: then the text was meant, not the number.
        for candidate in (written, self._sources.texts.get(key, written)):
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(candidate, kind)
        return self._expect(key, describe(kind), written)

    def _rate(self, written: Any, key: Key) -> Rate:
        if not isinstance(written, dict):
            return Rate.of_submits(self._plain(RateText, written, key))
        table = self.section(RateTable(), written, key)
        return Rate.of_submits(table.rate, table.burst) if table.rate else self._expect(key, A_RATE, written)

    def _limit(self, written: Any, key: Key) -> LimitSettings:
        if not isinstance(written, dict):
            return Slots(limit=self._plain(SlotCount, written, key))
        table = self.section(LimitTable(), written, key)
        if table.rate and table.limit is None:
            return Rate.of(table.rate, table.burst, shared=table.shared)
        if table.limit is None or table.rate or table.burst:
            self._expect(key, A_LIMIT, written)
        return Slots(limit=table.limit, shared=table.shared)

    def _stages(self, written: Any, key: Key) -> Stages:
        try:
            return read_stages(written)
        except ValueError as problem:
            self._refuse(key, str(problem))

    def _table(self, written: Any, key: Key) -> dict[str, Any]:
        return written if isinstance(written, dict) else self._expect(key, "a table", written)

    def _expect(self, key: Key, expected: str, written: Any) -> NoReturn:
        self._refuse(key, f"expected {expected}, not {_shown(written)}")

    def _refuse(self, key: Key, problem: str) -> NoReturn:
        self._refuse_section(key, Problem(problem))

    def _refuse_section(self, key: Key, problem: Problem) -> NoReturn:
        """Names what set the keys that are wrong together; else what wrote the section."""
        places = [self._sources.place((*key, *inner)) for inner in problem.keys]
        if not any(places) and key:
            places = [self._sources.place(key)]
        known = " and ".join(dict.fromkeys(filter(None, places)))
        raise InvalidSettings(
            f"{'.'.join(key) or 'settings'}: {problem.words}" + (f" (from {known})" if known else "")
        )


def _name_problem(kind: Any, name: str) -> str | None:
    """What is wrong with a name that a table has for an entry of this kind, if anything."""
    if kind in (ServiceSettings, Stages):
        return name_problem(name)
    if kind == NamespaceSettings:
        return None if NAMESPACE.fullmatch(name) else A_NAMESPACE
    if kind == TierEntry and name == INTERACTIVE:
        return f"{name!r} is a duration of its own: give the tier another name"
    if kind in (LimitSettings, TaskSettings, TierEntry, Positive):
        try:
            check_name("name", name)
        except InvalidInput as error:
            return error.reason
    return None


def describe(kind: Any) -> str:
    """What a value of this type is, for people."""
    if typing.get_origin(kind) is typing.Annotated:
        inner, meta = typing.get_args(kind)
        if meta.description:
            return str(meta.description)
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
    """The same key of another section, else the nearest one in the same table, else all there are."""
    settings = Settings()
    for section in settings.__struct_fields__:
        if name in getattr(getattr(settings, section), "__struct_fields__", ()):
            return f"did you mean {section}.{name}?"
    if near := nearest(name, known):
        return f"did you mean {'.'.join((*key, near))}?"
    return f"known here: {', '.join(known)}"


def _all_numbers(test: Callable[[float], bool], written: Any) -> bool:
    """Whether the test holds for every number in it."""
    if isinstance(written, int | float):
        return test(written)
    inside = written.values() if isinstance(written, dict) else written if isinstance(written, list) else ()
    return all(_all_numbers(test, inner) for inner in inside)


def _is_small(number: float) -> bool:
    return abs(number) <= MOST_NUMBER


def _shown(written: Any) -> str:
    if isinstance(written, bool):
        return str(written).lower()
    return f'"{written}"' if isinstance(written, str) else str(written)
