"""Checks of values that come from outside; each names the field and says what is expected."""

import difflib
import heapq
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from fairlead.errors import InvalidInput, UnknownTask

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
# Of W3C: version, trace, span, flags.
TRACEPARENT = re.compile("[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MOST_BYTES = 256 * 1024  # of parameters or of a result, as JSON
MOST_DEPTH = 32
MOST_CAPABILITIES = 16
MOST_STEPS = 32
MOST_UNITS = 1_000_000_000
MOST_SECONDS = 10 * 365 * 86400
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1000.0  # of a share
MOST_COMPARED, MOST_LETTERS = 200, 64  # names that are compared with a mistaken one, and their length
LIST = (list, tuple)
TABLE = (dict, Mapping)  # the first is known at once, the second is searched for
LONE_SURROGATE = "holds a lone surrogate: send valid Unicode"
NESTED = (*LIST, *TABLE)
LATEST = 253_402_300_799_999  # ms: the end of the year 9999


def to_json(field_name: str, value: object, most: int = MOST_BYTES) -> str:
    """JSON for the store: at most `most` bytes and 32 levels deep, without NaN and lone surrogates."""
    if flaw := _flaw(value, MOST_DEPTH):
        where, words = flaw
        raise InvalidInput(field_name + where, words)
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError) as problem:  # a subclass it does not know, a number of too many digits
        raise InvalidInput(field_name, f"is not JSON: {problem}") from None
    if len(encoded) > most:
        raise InvalidInput(
            field_name, f"is {len(encoded)} bytes of JSON, at most {most} are accepted", "too_large"
        )
    return encoded.decode()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant.

    Comparing takes time, so of many it looks only at those of about the same length.
    """
    some = heapq.nsmallest(MOST_COMPARED, known, key=lambda one: (abs(len(one) - len(name)), one))
    short = [one for one in some if len(one) <= MOST_LETTERS]
    similar = difflib.get_close_matches(name[:MOST_LETTERS], short, n=1, cutoff=0.5)
    return similar[0] if similar else None


Flaw = tuple[str, str]  # where, and why


def _flaw(value: object, depth: int) -> Flaw | None:
    """Where it is not JSON, and why. The way there is put together only when there is a flaw: a value of
    256 KiB may have a hundred thousand places, and everybody waits while they are looked at."""
    kind = type(value)
    if kind is list or kind is dict:  # known at once
        if not value and depth:
            return None
    elif isinstance(value, str):
        return None if value.isascii() or is_text(value) else ("", LONE_SURROGATE)
    elif isinstance(value, float):
        return None if math.isfinite(value) else ("", f"{value} is not JSON: use null or a finite number")
    elif value is None or isinstance(value, int):
        return None
    if isinstance(value, msgspec.Struct):
        return _flaw(msgspec.to_builtins(value), depth)
    if isinstance(value, NESTED):
        if depth == 0:
            return "", f"is nested more than {MOST_DEPTH} deep"
        return (_flaw_of_items if isinstance(value, LIST) else _flaw_of_table)(value, depth)
    return "", f"{kind.__name__} is not JSON"


def _flaw_of_items(items: Any, depth: int) -> Flaw | None:
    for i, inner in enumerate(items):
        if type(inner) is not int and (flaw := _flaw(inner, depth - 1)):
            return f"[{i}]{flaw[0]}", flaw[1]
    return None


def _flaw_of_table(table: Any, depth: int) -> Flaw | None:
    for key, inner in table.items():
        if not isinstance(key, str):
            return "", f"the key {key!r} is not a string"
        if not key.isascii() and not is_text(key):
            return "", LONE_SURROGATE
        if type(inner) is not int and (flaw := _flaw(inner, depth - 1)):
            return f".{key}{flaw[0]}", flaw[1]
    return None


def is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(field_name: str, value: str) -> None:
    if not is_text(value):
        raise InvalidInput(field_name, LONE_SURROGATE)


def check_name(field_name: str, value: object) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidInput(field_name, "use 1 to 200 of A-Z a-z 0-9 _ . : -")


def check_short(field_name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():
        raise InvalidInput(field_name, "is not 1 to 200 printable characters")
    check_text(field_name, value)


def check_traceparent(field_name: str, value: object) -> None:
    if value is not None and not (isinstance(value, str) and TRACEPARENT.fullmatch(value)):
        raise InvalidInput(field_name, "is not a traceparent as W3C defines it")


def check_task_id(task_id: str) -> str:
    """What cannot be an id is the id of no task."""
    if not UUID.fullmatch(task_id):
        raise UnknownTask()
    return task_id


def check_units(field_name: str, units: object) -> None:
    check_whole(field_name, units, MOST_UNITS, least=1)


def check_whole(field_name: str, value: object, most: int, *, least: int = 0) -> None:
    if not _is_whole(value) or not least <= value <= most:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a whole number from {least} to {most}")


def check_fraction(field_name: str, value: object) -> None:
    if value is not None and not _is_between(0, value, 1):
        raise InvalidInput(field_name, "is not a number from 0 to 1")


def check_weight(field_name: str, value: object) -> None:
    if not is_weight(value):
        raise InvalidInput(field_name, f"is not a number from {LEAST_WEIGHT} to {MOST_WEIGHT:g}")


def is_weight(value: object) -> bool:
    return _is_between(LEAST_WEIGHT, value, MOST_WEIGHT)


def check_seconds(field_name: str, value: object, *, zero: bool = False) -> None:
    if value is not None and not _is_between(0 if zero else 0.001, value, MOST_SECONDS):
        raise InvalidInput(field_name, f"is not a number of seconds up to {MOST_SECONDS}")


def check_ms(field_name: str, value: object) -> None:
    if not _is_whole(value) or not 1 <= value <= MOST_SECONDS * 1000:  # type: ignore[operator]
        raise InvalidInput(field_name, f"is not a whole number of ms from 1 to {MOST_SECONDS * 1000}")


def check_time(field_name: str, value: object) -> None:
    if not _is_whole(value) or not 0 <= value <= LATEST:  # type: ignore[operator]
        raise InvalidInput(field_name, "is not a time")


def check_capabilities(capabilities: Collection[str]) -> None:
    if isinstance(capabilities, str) or not isinstance(capabilities, Collection):
        raise InvalidInput("required_capabilities", "is not a list of names")
    if len(capabilities) > MOST_CAPABILITIES:
        raise InvalidInput(
            "required_capabilities", f"names {len(capabilities)}, at most {MOST_CAPABILITIES} are accepted"
        )
    for capability in capabilities:
        check_name("required_capabilities", capability)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_between(least: float, value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
