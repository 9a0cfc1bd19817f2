"""Pipelines from Python, and their plans."""

from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.errors import InvalidInput
from fairlead.model.job import NewStep
from fairlead.pipeline.pipelines import Parallel, plan, stages_of

fl = Fairlead()


@fl.task
async def draw(prompt: str) -> dict[str, Any]:
    return {"picture": prompt}


@fl.task("images:frame")
async def frame(picture: str) -> str:
    return picture


def test_a_pipeline_is_made_of_names_functions_and_parallels(subtests: pytest.Subtests) -> None:
    for steps, stages in [
        (["a", "b"], (("a",), ("b",))),
        (("a", draw), (("a",), ("draw",))),
        (["a", ["b", draw], frame], (("a",), ("b", "draw"), ("images:frame",))),
        (["a", Parallel("b", draw)], (("a",), ("b", "draw"))),
        (["a", {"parallel": ["b", "c"]}], (("a",), ("b", "c"))),
        (["a", "a"], (("a",), ("a",))),
    ]:
        with subtests.test(steps=steps, stages=stages):
            assert stages_of("p", steps) == stages


@pytest.mark.parametrize(
    ("name", "steps", "message"),
    [
        ("p", [], "pipelines.p: has no steps: name at least one"),
        ("p", "abc", "pipelines.p: expected a list of steps"),
        ("p", None, "pipelines.p: expected a list of steps"),
        ("p", ["a", []], "pipelines.p: entry 2: parallel has no steps"),
        ("p", [Parallel()], "pipelines.p: entry 1: parallel has no steps"),
        ("p", [["a", ["b"]]], "pipelines.p: entry 1: a step is a name"),
        ("p", [len], "pipelines.p: entry 1: a step is a name"),
        ("p", ["a"] * 33, "pipelines.p: has 33 steps"),
        ("a b", ["a"], "pipeline: 'a b': use 1 to 100 of"),
        (5, ["a"], "pipeline: 5: is no name"),
    ],
)
def test_a_mistake_is_named(name: Any, steps: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        stages_of(name, steps)
    assert caught.value.message.startswith(message)


def test_a_plan_knows_the_type_of_each_step() -> None:
    stages = stages_of("p", ["enhancer", ["image_gen", draw], "enhancer"])
    assert plan("p", stages, {"service:enhancer", "service:image_gen", "draw", "other"}) == (
        (NewStep("enhancer", "service:enhancer"),),
        (NewStep("image_gen", "service:image_gen"), NewStep("draw", "draw")),
        (NewStep("enhancer", "service:enhancer"),),
    )


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (
            ["service:prompt_enhancer", "draw"],
            "pipelines.p: step 'promt_enhancer' is neither a service nor a task type; "
            "did you mean 'prompt_enhancer'?",
        ),
        (
            ["draw", "service:gone"],
            "step 'promt_enhancer' is neither a service nor a task type; known are draw, gone",
        ),
        (
            ["service:promt_enhancer", "draw", "promt_enhancer"],
            "step 'promt_enhancer' is a service and a task type as",
        ),
    ],
)
def test_a_step_must_be_a_service_or_a_task_type(types: list[str], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan("p", stages_of("p", [draw, "promt_enhancer"]), types)
    assert message in caught.value.message


def test_without_any_known_step_the_error_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"there are none: add \[services\]"):
        plan("p", stages_of("p", ["a"]), [])
