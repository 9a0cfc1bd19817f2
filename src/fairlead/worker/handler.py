"""A handler: the function that does a task's work, what it may be given, and where it runs."""

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import msgspec

from fairlead.checks import check_name
from fairlead.errors import InvalidInput
from fairlead.model.task import Task
from fairlead.pipeline.steps import input_of, step_parameters
from fairlead.settings import TaskSettings
from fairlead.worker.context import Context

RunIn = Literal["loop", "thread", "process"]


@dataclass(frozen=True)
class Handler:
    """What `@fl.task` makes of a function."""

    task_type: str
    function: Callable[..., Any]
    run_in: RunIn
    settings: TaskSettings = field(default_factory=TaskSettings)
    parameters: "Parameters" = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        _check_function(self.function)
        check_name("task_type", self.task_type)
        object.__setattr__(self, "parameters", Parameters(self.function))
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))
        if self.run_in == "process" and not self._has_module:
            raise InvalidInput(
                "run_in", f"{_name(self.function)}: another process cannot find it; define it in a module"
            )

    def arguments(self, task: Task) -> dict[str, Any]:
        """What the function is to be called with; InvalidInput when that does not fit its type hints."""
        job = input_of(task)
        return self.parameters.checked(
            task.parameters if job is None else step_parameters(job, self.parameters.taken)
        )

    @property
    def can_run_apart(self) -> bool:
        """Whether another process can find it. Only known when its module has been read to the end."""
        module = sys.modules.get(self.function.__module__)
        return self._has_module and module is not None and defined_in(module, self.task_type) is not None

    @property
    def _has_module(self) -> bool:
        return "<locals>" not in self.function.__qualname__ and source_of(self.function) is not None

    @property
    def source(self) -> str:
        return source_of(self.function) or ""


def defined_in(module: ModuleType, task_type: str) -> Handler | None:
    """The handler of this type that a module gives a name to."""
    for value in vars(module).values():
        handler = getattr(value, "handler", None)
        if isinstance(handler, Handler) and handler.task_type == task_type:
            return handler
    return None


def source_of(function: Callable[..., Any]) -> str | None:
    """Where another process finds it: a module's name, or the path of a script."""
    module = sys.modules.get(function.__module__)
    if module is None:
        return None
    if module.__name__ != "__main__":
        return module.__name__
    if spec := getattr(module, "__spec__", None):  # python -m
        return str(spec.name)
    return getattr(module, "__file__", None)  # None: typed in, there is no script


def place_for(function: Callable[..., Any], run_in: RunIn | None) -> RunIn:
    """Where a function runs unless it is said: `async def` in the loop, `def` in a thread."""
    if run_in == "thread" and inspect.iscoroutinefunction(function):
        raise InvalidInput("run_in", f"{_name(function)} is async: it runs in the loop or in a process")
    if run_in is not None and run_in not in typing.get_args(RunIn):
        raise InvalidInput("run_in", f"{run_in!r} is not one of loop, thread, process")
    return run_in or ("loop" if inspect.iscoroutinefunction(function) else "thread")


class Parameters:
    """A function's parameters by their type hints: what a client gives is checked against them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = _name(function)
        hints = _hints(function)
        named: list[inspect.Parameter] = []
        any_others: list[inspect.Parameter] = []
        self.context: str | None = None
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise InvalidInput(
                    "task", f"{self._name}: parameter {parameter.name!r} has no name to be given by; name it"
                )
            if parameter.kind is parameter.VAR_KEYWORD:
                any_others.append(parameter)
            elif _is_context(hints.get(parameter.name)):
                self.context = parameter.name
            else:
                named.append(parameter)
        self._takes_any = bool(any_others)
        self.signature = inspect.Signature([*named, *any_others])
        self.names = {one.name for one in named}
        self._in_order = [one.name for one in named if one.kind is one.POSITIONAL_OR_KEYWORD]
        self._required = {one.name for one in named if one.default is one.empty}
        self._shape = self._make_shape(named, hints)

    @property
    def taken(self) -> set[str] | None:
        """The names it takes; None: any."""
        return None if self._takes_any else self.names

    def _make_shape(self, named: list[inspect.Parameter], hints: Mapping[str, Any]) -> type[msgspec.Struct]:
        fields: list[Any] = []
        try:
            for parameter in named:
                kind = hints.get(parameter.name, Any)
                if parameter.default is parameter.empty:
                    fields.append((parameter.name, kind))
                else:  # what is not given stays unset: the function has its own default
                    fields.append((parameter.name, kind | msgspec.UnsetType, msgspec.UNSET))
            shape = msgspec.defstruct(
                "Parameters", fields, kw_only=True, forbid_unknown_fields=not self._takes_any
            )
            msgspec.json.Decoder(shape, dec_hook=_other_kinds)
        except TypeError as problem:
            raise InvalidInput("task", f"{self._name}: its type hints cannot be checked: {problem}") from None
        return shape

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the function is to be called with; InvalidInput when it does not fit its type hints."""
        if not self.names and not given:
            return {}
        try:
            shaped = msgspec.convert(given, self._shape, dec_hook=_other_kinds, str_keys=True)
        except msgspec.ValidationError as problem:
            raise InvalidInput("parameters", f"do not fit {self._name}: {problem}") from None
        fitting = {
            name: value for name in self.names if (value := getattr(shaped, name)) is not msgspec.UNSET
        }
        if self._takes_any:
            return {**given, **fitting}
        return fitting

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """A call `f(*args, **kwargs)` as JSON parameters, checked; TypeError as the call itself gives."""
        arguments = self._matched(args, kwargs)
        try:
            parameters: dict[str, Any] = msgspec.to_builtins(arguments, enc_hook=_to_plain, str_keys=True)
        except TypeError as problem:
            raise InvalidInput("parameters", f"{self._name}: {problem}") from None
        self.checked(parameters)
        return parameters

    def _matched(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(zip(self._in_order, args, strict=False))
        given = kwargs.keys()
        fits = given <= self.names and given.isdisjoint(arguments) and len(args) <= len(self._in_order)
        # Nearly all calls take this way: it is far less work than binding a signature.
        if fits and self._required <= {*arguments, *given}:
            return {**arguments, **kwargs}
        arguments = self.signature.bind(*args, **kwargs).arguments
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments.update(arguments.pop(parameter.name, {}))
        return arguments


def _check_function(function: Callable[..., Any]) -> None:
    if not inspect.isroutine(function):
        raise InvalidInput("task", f"{function!r} is not a function: decorate a `def` or an `async def`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            "task", f"{_name(function)} yields: let it emit by its Context, and return a result"
        )


def _name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__qualname__', function)}()"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise InvalidInput("task", f"{_name(function)}: a type hint is not defined: {problem}") from None


def _is_context(hint: Any) -> bool:
    return hint is Context or Context in typing.get_args(hint)


def _other_kinds(kind: type, given: Any) -> Any:
    """Kinds that msgspec does not know: models that validate themselves (pydantic's way)."""
    if validate := getattr(kind, "model_validate", None):
        try:
            return validate(given)
        except ValueError as problem:
            raise msgspec.ValidationError(str(problem)) from None
    if isinstance(given, kind):
        return given
    raise msgspec.ValidationError(f"Expected `{kind.__name__}`, which has no form in JSON")


def _to_plain(value: Any) -> Any:
    if dump := getattr(value, "model_dump", None):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no form in JSON")
