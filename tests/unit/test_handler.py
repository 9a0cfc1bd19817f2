"""What may be a task, where it runs, and which parameters fit it."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest

from fairlead import Context, Fairlead
from fairlead.checks import to_json
from fairlead.errors import InvalidInput
from fairlead.worker.handler import Handler, Parameters, place_for, source_of
from tests.unit import test_handler as this_module


@dataclass
class Size:
    width: int
    height: int = 10


class Colour(StrEnum):
    RED = "red"


class Model:
    """Validates itself, as pydantic's models do."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_validate(cls, given: Any) -> "Model":
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise ValueError("name is missing")
        return cls(given["name"])

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return {"name": self.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.name == self.name

    def __repr__(self) -> str:
        return f"Model({self.name})"


def over_the_wire(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What the function is called with when somebody submits this."""
    parameters = Parameters(function)
    sent = to_json("parameters", parameters.bound(args, kwargs))
    return parameters.checked(msgspec.json.decode(sent))


def named(first: int, second: str = "b") -> None: ...


def with_context(prompt: str, ctx: Context, *, steps: int = 3) -> None: ...


def with_maybe_context(ctx: Context | None = None) -> None: ...


def with_rest(first: int, **rest: Any) -> None: ...


async def coroutine() -> None: ...


@Fairlead().task
def decorated() -> None: ...


# Parameters


def test_a_call_becomes_json_and_the_call_again() -> None:
    assert over_the_wire(named, 1) == {"first": 1}, "an omitted argument keeps the function's default"
    assert over_the_wire(named, 1, "x") == {"first": 1, "second": "x"}
    assert over_the_wire(named, second="x", first=1) == {"first": 1, "second": "x"}


def test_the_context_is_not_a_parameter() -> None:
    assert over_the_wire(with_context, "p", steps=4) == {"prompt": "p", "steps": 4}
    assert Parameters(with_context).context == "ctx"
    assert Parameters(with_maybe_context).context == "ctx"
    with pytest.raises(InvalidInput, match="unknown field `ctx`"):
        Parameters(with_context).checked({"prompt": "p", "ctx": 1})


def test_other_names_go_to_a_function_that_takes_any() -> None:
    assert over_the_wire(with_rest, 1, second=2, third=[3]) == {"first": 1, "second": 2, "third": [3]}


def test_a_value_arrives_with_the_type_of_its_hint(subtests: pytest.Subtests) -> None:
    for kind, value in [
        (Size, Size(3)),
        (list[Size], [Size(1, 2), Size(3, 4)]),
        (Size | None, None),
        (Model, Model("ann")),
        (Model | None, Model("ann")),
        (list[Model], [Model("ann"), Model("bob")]),
        (datetime, datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)),
        (date, date(2026, 1, 2)),
        (timedelta, timedelta(hours=2)),
        (UUID, UUID(int=7)),
        (Decimal, Decimal("1.50")),
        (Colour, Colour.RED),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (dict[int, str], {1: "a"}),
        (bytes, b"\x00\xff"),
        (float, 3),
        (Any, {"a": [1, None, True]}),
        (object, [1]),
    ]:
        for has_default in [False, True]:
            with subtests.test(kind=kind, value=value, has_default=has_default):

                def function(given: Any) -> None: ...

                function.__annotations__["given"] = kind
                if has_default:
                    function.__defaults__ = ("unused",)
                assert over_the_wire(function, value) == {"given": value}
                if has_default:
                    assert over_the_wire(function) == {}


def test_a_parameter_without_a_hint_may_be_any_json() -> None:
    def function(given, other=None): ...  # type: ignore[no-untyped-def]

    assert over_the_wire(function, {"a": 1}) == {"given": {"a": 1}}


def validated(count: Annotated[int, msgspec.Meta(ge=1)], size: Size, who: Model | None = None) -> None: ...


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "missing required field `count`"),
        ({"count": 1}, "missing required field `size`"),
        ({"count": "1", "size": {"width": 1}}, "Expected `int`, got `str` - at `$.count`"),
        ({"count": 0, "size": {"width": 1}}, "Expected `int` >= 1 - at `$.count`"),
        ({"count": 1, "size": {}}, "missing required field `width` - at `$.size`"),
        ({"count": 1, "size": {"width": 1}, "colour": 1}, "unknown field `colour`"),
        ({"count": 1, "size": {"width": 1}, "who": {}}, "name is missing"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_argument_that_does_not_fit_is_refused_by_name(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Parameters(validated).checked(given)
    assert (refusal.value.field, refusal.value.code) == ("parameters", "invalid_input")
    assert "do not fit validated(): " in str(refusal.value)
    assert complaint in str(refusal.value)


def test_a_call_that_python_itself_would_refuse_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'first'"):
        Parameters(named).bound((), {})
    with pytest.raises(TypeError, match="unexpected keyword argument 'third'"):
        Parameters(named).bound((1,), {"third": 3})


def test_a_value_that_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"named\(\): object has no form in JSON"):
        Parameters(named).bound((object(),), {})


# Functions


def positional_only(first: int, /) -> None: ...


def variadic(*all_of_them: int) -> None: ...


def hint_unknown(given: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def hint_is_no_type(given: 5 = 5) -> None: ...  # type: ignore[valid-type]


def generates() -> Iterator[int]:
    yield 1


async def generates_async() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (positional_only, "positional_only(): parameter 'first' has no name to be given by; name it"),
        (variadic, "variadic(): parameter 'all_of_them' has no name to be given by; name it"),
        (hint_unknown, "hint_unknown(): a type hint is not defined: name 'Nowhere' is not defined"),
        (hint_is_no_type, "hint_is_no_type(): its type hints cannot be checked"),
        (generates, "generates() yields: let it emit by its Context, and return a result"),
        (generates_async, "generates_async() yields"),
        (functools.partial(named, 1), "is not a function: decorate a `def` or an `async def`"),
        (Model, "is not a function"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_that_cannot_be_a_task_is_refused_when_it_is_decorated(
    function: Any, complaint: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Fairlead().task(function)
    assert complaint in str(refusal.value)


def test_a_name_must_be_one() -> None:
    with pytest.raises(InvalidInput, match="task_type: use 1 to 200 of"):
        Fairlead().task("two words")(named)
    with pytest.raises(InvalidInput, match="task_type: use 1 to 200 of"):
        Fairlead().task(lambda: None)


def test_two_tasks_of_one_name_are_refused() -> None:
    fl = Fairlead()
    fl.task(named)
    with pytest.raises(InvalidInput, match="there are two tasks named 'named': rename one of them"):
        fl.task("named")(coroutine)
    assert fl.task("another")(named).task_type == "another"


def test_a_decorated_function_is_still_that_function() -> None:
    @Fairlead().task
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")


# Places


def test_async_runs_in_the_loop_and_plain_in_a_thread_by_default() -> None:
    assert place_for(coroutine, None) == "loop"
    assert place_for(named, None) == "thread"
    assert place_for(named, "loop") == "loop"
    assert place_for(coroutine, "process") == "process"


def test_a_place_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"coroutine\(\) is async: it runs in the loop or in a process"):
        place_for(coroutine, "thread")
    with pytest.raises(InvalidInput, match="'gpu' is not one of loop, thread, process"):
        place_for(named, "gpu")  # type: ignore[arg-type]


def test_a_process_must_be_able_to_find_the_function() -> None:
    def local() -> None: ...

    assert Handler("t", local, "thread").can_run_apart is False
    assert Handler("nap", asyncio.sleep, "loop").can_run_apart is False, "it has no name as a task there"
    assert this_module.decorated.handler.can_run_apart
    with pytest.raises(InvalidInput, match="another process cannot find it; define it in a module"):
        Handler("t", local, "process")
    assert Handler("t", this_module.named, "process").source == "tests.unit.test_handler"


def test_a_function_that_was_typed_in_is_nowhere_to_be_found() -> None:
    def typed_in() -> None: ...

    typed_in.__module__ = "gone"
    assert source_of(typed_in) is None
