"""What a decorated function says about itself, and what decorators and submits refuse."""

import inspect
from typing import Any

import pytest

from fairlead import Context, Fairlead, InvalidInput


@pytest.fixture
def fl() -> Fairlead:
    return Fairlead()


def test_the_signature_of_a_task_is_that_of_its_function(fl: Fairlead) -> None:
    @fl.task("paint")
    async def draw(ctx: Context, prompt: str, steps: int = 20) -> None: ...

    assert [*inspect.signature(draw).parameters] == ["ctx", "prompt", "steps"]
    assert repr(draw) == "<task function paint(prompt: str, steps: int = 20)>"


def test_the_signature_of_a_submit_has_the_parameters_without_the_context_and_the_options(
    fl: Fairlead,
) -> None:
    @fl.task
    async def draw(prompt: str, ctx: Context, user_id: int = 3, **rest: Any) -> None: ...

    signature = inspect.signature(draw.submit)
    assert [*signature.parameters][:3] == ["prompt", "user_id", "priority"]
    assert [*signature.parameters][-1] == "rest"
    assert signature.parameters["user_id"].annotation is int  # the function's own
    assert signature.parameters["max_retries"].kind is inspect.Parameter.KEYWORD_ONLY
    signature.bind("a robot", priority="high", colour="red")
    assert repr(draw.new).startswith("<draw.new(prompt: str, user_id: int = 3, *, priority:")


def test_a_decorator_names_the_right_spelling_of_an_option(fl: Fairlead) -> None:
    with pytest.raises(InvalidInput, match=r"there is no option timeout_seconds: use timeout$"):
        fl.task(timeout_seconds=3)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match=r"there is no option colour$"):
        fl.cron("* * * * *", colour="red")  # type: ignore[call-arg]


async def test_a_submit_names_the_right_spelling_of_an_option(fl: Fairlead) -> None:
    @fl.task
    async def draw(prompt: str) -> None: ...

    with pytest.raises(TypeError, match=r"^draw\.submit\(\) has no .* 'timeout': use timeout_seconds$"):
        await draw.submit("a robot", timeout=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^draw\.new\(\) has no .* 'promt': use prompt$"):
        draw.new(promt="a robot")  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match=r"there is no option timeout: use timeout_seconds$"):
        await fl.submit("draw", timeout=3)  # type: ignore[call-arg]


def test_a_parameter_may_be_named_timeout(fl: Fairlead) -> None:
    @fl.task
    async def wait(timeout: float) -> None: ...

    assert wait.new(timeout=3).parameters == {"timeout": 3}


def test_options_are_given_to_a_function_as_to_a_decorator(fl: Fairlead) -> None:
    def draw(prompt: str) -> None: ...

    made: Any = fl.task
    made(draw, timeout=3)
    assert fl.handlers["draw"].settings.timeout_seconds == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"expression": "61 * * * *"},
        {"timezone": "Nowhere"},
        {"missed": "some"},
        {"idempotency_key": "k"},
        {"parameters": {"colour": "red"}},
        {"name": "no name"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_cron_with_a_mistake_registers_nothing(fl: Fairlead, wrong: dict[str, Any]) -> None:
    def tidy() -> None: ...

    with pytest.raises(InvalidInput):
        options: Any = {"expression": "* * * * *", "max_concurrent": 1}
        fl.cron(**options | wrong)(tidy)
    assert (fl.handlers, fl.crons, fl.limits) == ({}, [], {})
    fl.cron("* * * * *", max_concurrent=1)(tidy)  # it can be corrected in the same process
    assert [*fl.handlers] == [*fl.limits] == ["tidy"]


def test_a_task_with_a_mistake_leaves_no_limit(fl: Fairlead) -> None:
    with pytest.raises(InvalidInput):
        fl.task(max_concurrent=3)(lambda *numbers: None)
    assert fl.limits == {}
