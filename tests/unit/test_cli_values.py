"""Values of the command line, and their meaning."""

from typing import get_args

import pytest

from fairlead import Fairlead
from fairlead.cli.limit import wanted_limit
from fairlead.cli.output import printable
from fairlead.cli.submit import given_limits, given_parameters
from fairlead.errors import InvalidInput
from fairlead.model.states import State
from fairlead.settings import Rate, Slots
from fairlead.shapes.base import StatusName


def test_a_value_is_json_if_it_reads_as_json_and_else_text(subtests: pytest.Subtests) -> None:
    for written, meant in [
        ("1", 1),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('"1"', "1"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("a robot", "a robot"),
        ("", ""),
        ("NaN", "NaN"),
        ("01", "01"),
        ("a=b", "a=b"),
        ("\ud800", "\ud800"),
    ]:
        with subtests.test(written=written, meant=meant):
            assert given_parameters(None, [f"name={written}"]) == {"name": meant}


def test_single_parameters_override_the_object_and_the_last_one_wins() -> None:
    assert given_parameters('{"a": 1, "b": 2}', ["b=3", "c=4", "c=5"]) == {"a": 1, "b": 3, "c": 5}


def test_no_parameters_are_an_empty_object() -> None:
    assert given_parameters(None, []) == {}


@pytest.mark.parametrize("pair", ["name", "=value", ""])
def test_a_parameter_without_a_name_or_a_value_is_refused(pair: str) -> None:
    with pytest.raises(InvalidInput, match=r"^--param: .* is not name=value"):
        given_parameters(None, [pair])


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "[]", "1", "null", '{"a": NaN}', "\ud800"])
def test_parameters_that_are_not_an_object_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^--parameters: .* object such as \{"):
        given_parameters(text, [])


def test_limits_are_names_with_units() -> None:
    assert given_limits(["gpu=1", "memory=24"]) == {"gpu": 1, "memory": 24}


def test_units_that_are_not_a_whole_number_are_refused(subtests: pytest.Subtests) -> None:
    for pair in ["gpu", "gpu=", "gpu=-1", "gpu=1.5", "gpu=one", "gpu=²"]:
        with subtests.test(pair=pair), pytest.raises(InvalidInput, match=r"^--limit: "):
            given_limits([pair])


def test_a_limit_is_slots_or_a_rate() -> None:
    assert wanted_limit(3, None, None) == Slots(limit=3)
    assert wanted_limit(None, "60/min", None) == Rate(count=60, period_seconds=60, burst=6)
    assert wanted_limit(None, "60/min", 10) == Rate(count=60, period_seconds=60, burst=10)


def test_every_state_can_be_requested() -> None:
    assert get_args(StatusName) == tuple(State)


def test_control_characters_are_escaped() -> None:
    assert printable("red \x1b[31m\r\n\x9b ä €") == "red \\x1b[31m\\r\\n\\x9b ä €"


def test_a_burst_of_nothing_is_refused_where_it_is_declared() -> None:
    with pytest.raises(InvalidInput, match="burst"):
        Fairlead().limit("api", rate="10/s", burst=0)
