"""What is said about a task that no live worker can run."""

import pytest

from fairlead.checks import MOST_COMPARED, nearest
from fairlead.model.unserved import unserved_sentence, warnings_of


@pytest.mark.parametrize(
    ("capabilities", "warning"),
    [
        ("", "no worker serves 'draw' yet; it waits until one does"),
        ("gpu", "no worker serves 'draw' with the capability 'gpu' yet; it waits until one does"),
        (
            "big,gpu",
            "no worker serves 'draw' with the capabilities 'big', 'gpu' yet; it waits until one does",
        ),
    ],
)
def test_a_warning_names_the_type_and_its_capabilities(capabilities: str, warning: str) -> None:
    assert warnings_of([{"type": "draw", "capabilities": capabilities}]) == (warning,)


def test_steps_of_the_same_type_are_warned_about_once() -> None:
    steps = [{"type": name, "capabilities": ""} for name in ("draw", "sing", "draw")]
    assert [warning.split("'")[1] for warning in warnings_of(steps)] == ["draw", "sing"]
    assert warnings_of([]) == ()


@pytest.mark.parametrize(
    ("serves_type", "missing", "similar", "sentence"),
    [
        (False, (), None, "No live worker serves the task type 'drwa'."),
        (False, ("gpu",), "draw", "No live worker serves the task type 'drwa': did you mean 'draw'?"),
        (True, ("gpu",), None, "No live worker that serves the task type 'drwa' has the capability 'gpu'."),
        (
            True,
            ("big", "gpu"),
            None,
            "No live worker that serves the task type 'drwa' has the capabilities 'big', 'gpu'.",
        ),
        (
            True,
            (),
            None,
            "The workers that serve the task type 'drwa' do not respond, or none of them has all "
            "capabilities that the task needs.",
        ),
    ],
)
def test_a_sentence_says_what_is_missing(
    serves_type: bool, missing: tuple[str, ...], similar: str | None, sentence: str
) -> None:
    assert unserved_sentence("drwa", missing, similar, serves_type=serves_type) == sentence


def test_the_nearest_name_is_found_among_many() -> None:
    others = [f"{number:012}" for number in range(10 * MOST_COMPARED)]
    assert nearest("rendr_frame", ["render_frame", "render", "resize"]) == "render_frame"
    assert (
        nearest("rendr_frame", [*(name[:11] + "0" * 9 for name in others), "render_frame"]) == "render_frame"
    )
    assert nearest("rendr_frame", ["sing"]) is None
    assert nearest("rendr_frame", []) is None


def test_very_long_names_are_not_compared() -> None:
    assert nearest("a" * 200, ["a" * 199]) is None
