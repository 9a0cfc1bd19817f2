"""What the last word of a line is meant to be."""

from collections.abc import Iterator

import pytest
from cyclopts import App

from fairlead.cli import app
from fairlead.cli.candidates import ARGUMENTS, FLAGS, OPTIONS, READERS, REPEATED, Wish, wish_of


def test_the_last_word_is_known_by_those_before_it(subtests: pytest.Subtests) -> None:
    for line, wish in [
        ("fairlead submit ", Wish("type", "")),
        ("fairlead submit dr", Wish("type", "dr")),
        ("fairlead submit --wait dr", Wish("type", "dr")),
        ("fairlead submit --priority high dr", Wish("type", "dr")),
        ("fairlead submit draw ", None),
        ("fairlead submit draw --limit g", Wish("units", "g")),
        ("fairlead submit draw --limit=g", Wish("units", "g")),
        ("fairlead submit draw --param ", None),
        ("fairlead task list --task-type ", Wish("type", "")),
        ("fairlead task list --limit ", None),
        ("fairlead task show 01", Wish("task", "01")),
        ("fairlead job submit ", Wish("pipeline", "")),
        ("fairlead job list --feature-name st", Wish("pipeline", "st")),
        ("fairlead job resume 01", Wish("job", "01")),
        ("fairlead limit set g", Wish("limit", "g")),
        ("fairlead limit release gpu ", None),
        ("fairlead workers drain a b", Wish("worker", "b")),
        ("fairlead dlq replay ", Wish("dead letter", "")),
        (
            "fairlead --engine redis://h task --namespace=blue show ",
            Wish("task", "", {"engine": "redis://h", "namespace": "blue"}),
        ),
        ("fairlead", None),
        ("fairlead ", None),
        ("fairlead task ", None),
        ("", None),
    ]:
        with subtests.test(line=line):
            assert wish_of(line) == wish


def commands(of: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    for name in of:
        if not name.startswith("-"):
            command = of[name]
            yield " ".join((*path, name)), command
            yield from commands(command, (*path, name))


def test_every_command_and_kind_of_value_exists() -> None:
    names = {name for name, _ in commands(app)}
    assert names >= {*ARGUMENTS, *REPEATED}
    assert {*ARGUMENTS.values(), *REPEATED.values(), *OPTIONS.values()} == set(READERS)


def test_the_options_without_a_value_are_known() -> None:
    completed = {name for name, _ in commands(app) if name in {*ARGUMENTS, *REPEATED}} | {"task list"}
    flags = {
        option
        for name, command in commands(app)
        if name in completed
        for argument in command.assemble_argument_collection()
        if argument.hint in (bool, bool | None)
        for option in argument.names
    }
    assert flags == FLAGS
