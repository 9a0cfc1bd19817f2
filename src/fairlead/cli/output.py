"""Printing: sentences and questions for people, JSON for programs."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

T = TypeVar("T")

Output = Literal["table", "json"]

MANY = 20  # things after which a person wants to see how far it is


def print_answer(output: Output, answer: Any, sentence: str) -> None:
    """What was done: as JSON, or as a sentence."""
    if output == "json":
        print_json(answer)
    else:
        print(sentence)


def print_end(output: Output, answer: Any, result: Callable[[], Any]) -> None:
    """What was waited for: as JSON, or its result alone, which raises if there is none."""
    if output == "json":
        print_json(answer)
    given = result()
    if output == "table":
        print_json(given)


def print_json(value: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def shown(value: Any) -> str:
    """In a cell: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else compact(value)


def say(message: str) -> None:
    """For the person, not for the program that reads the answer."""
    print(printable(message), file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"fairlead: warning: {warning}")


def agreed(question: str) -> bool:
    """Asks on a terminal. A script that calls it has decided before."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def each(things: Sequence[T], words: str) -> Iterable[T]:
    """The things one after the other, with a bar on a terminal when there are many."""
    if len(things) < MANY or not sys.stderr.isatty():
        return things
    from rich.console import Console
    from rich.progress import track

    return track(things, words, console=Console(stderr=True), transient=True)


def printable(text: str) -> str:
    """Without what would move the cursor or break the line: errors and outputs may hold anything."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
