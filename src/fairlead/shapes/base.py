"""What all shapes share: the types of fields, and the conversion between values and JSON."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NewType,
    Self,
    TypeVar,
    get_args,
    get_type_hints,
)

from msgspec import Meta, Struct
from msgspec.structs import asdict, fields

from fairlead.model.priority import NAMED_PRIORITIES, Priority
from fairlead.times import read_time, time_text

#: An object without a shape.
Json = dict[str, Any]

PriorityName = Literal["high", "medium", "low"]
StatusName = Literal["delayed", "queued", "executing", "completed", "failed", "cancelled", "dead_letter"]
#: A time in an answer; `Time` is one in a request.
Moment = NewType("Moment", str)

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:-]+$")]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
Units = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=315_360_000)]
SomeSeconds = Annotated[float, Meta(ge=0.001, le=315_360_000)]
Time = Annotated[str, Meta(max_length=40, description="RFC 3339", extra_json_schema={"format": "date-time"})]
Fence = Annotated[int, Meta(ge=1)]
Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body or query of a request: strict, an unknown field is an error."""


class LongPageQuery(Body, frozen=True):
    """For lists that are mostly short: without a `limit` a page has all items, up to 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=4000)] = ""


class AcceptedQuery(Body, frozen=True):
    """For lists of what was accepted within some time."""

    since: Time | None = None  # of when it was accepted
    until: Time | None = None

    @property
    def wanted(self) -> Json:
        """With times in ms."""
        times = {name: getattr(self, name) for name in ("since", "until")}
        return asdict(self) | {name: read_time(name, one) for name, one in times.items() if one is not None}


def with_time_texts(wanted: Mapping[str, Any]) -> Json:
    """The other way: what a client asks for."""
    return {**wanted, **{name: time_text(wanted.get(name)) for name in ("since", "until")}}


class NoQuery(Body, frozen=True):
    pass


class Answer(Struct, kw_only=True):
    pass


V = TypeVar("V")
Convert = Callable[[Any], Any]


class Shape(Answer, Generic[V]):
    """The JSON of a value. A field has the name of an attribute, or `names` maps it to one.

    `extra` are fields that the value lacks: they are given to `from_value`, or null. Attributes that the JSON
    lacks are given to `to_value`, or have their defaults.
    """

    names: ClassVar[Mapping[str, str]] = {}
    extra: ClassVar[Collection[str]] = ()

    @classmethod
    def from_value(cls, value: V, **given: Any) -> Self:
        for name, attribute, write, _ in _plan(cls).fields:
            if name not in given:
                given[name] = write(getattr(value, attribute))
        for name in cls.extra:
            given.setdefault(name, None)
        return cls(**given)

    def to_value(self, **given: Any) -> V:
        plan = _plan(type(self))
        for name, attribute, _, read in plan.fields:
            if read and attribute not in given:
                given[attribute] = read(getattr(self, name))
        made: V = plan.kind(**given)
        return made


class _Plan:
    """How the fields of a shape map to the attributes of its value."""

    def __init__(self, shape: type[Shape[Any]]) -> None:
        self.kind = _kind(shape)
        hints, attributes = get_type_hints(shape), get_type_hints(self.kind)
        self.fields: list[tuple[str, str, Convert, Convert | None]] = []
        for field in fields(shape):
            attribute = shape.names.get(field.name, field.name)
            if attribute in attributes or hasattr(self.kind, attribute):
                write, read = _converters(field.name, hints[field.name], attributes.get(attribute, Any))
                is_property = attribute not in attributes  # which cannot be set
                self.fields.append((field.name, attribute, write, None if is_property else read))
            elif field.name not in shape.extra and field.required:
                raise TypeError(f"{self.kind.__name__} has no {attribute} for the JSON of {shape.__name__}")


_plan = cache(_Plan)


def _kind(shape: type[Shape[Any]]) -> type:
    for base in shape.__mro__:
        for generic in base.__dict__.get("__orig_bases__", ()):
            if arguments := get_args(generic):
                return arguments[0]  # type: ignore[no-any-return]
    raise TypeError(f"{shape.__name__} does not name the type of its value")


def _same(value: Any) -> Any:
    return value


def _converters(name: str, hint: Any, kind: Any) -> tuple[Convert, Convert]:
    """From the type of an attribute to that of a field, and back."""
    if NoneType in get_args(hint):
        write, read = _converters(name, _without_none(hint), _without_none(kind))
        return partial(_unless_none, write), partial(_unless_none, read)
    if hint is Moment:
        return time_text, partial(read_time, name)
    if hint == PriorityName and kind in (Priority, Any):
        return Priority.word.fget, NAMED_PRIORITIES.__getitem__  # type: ignore[attr-defined]
    if isinstance(hint, type) and issubclass(hint, Shape):
        return hint.from_value, hint.to_value
    if getattr(hint, "__origin__", None) in (list, dict):
        return _many(name, hint, kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _same, kind
    return _same, _same


def _many(name: str, hint: Any, kind: Any) -> tuple[Convert, Convert]:
    item = next((one for one in get_args(kind) if one not in (str, ...)), Any)
    write, read = _converters(name, get_args(hint)[-1], item)
    if hint.__origin__ is dict:
        if write is _same:  # it may be undecoded JSON
            return _same, _same
        return partial(_each_value, write), partial(_each_value, read)
    made = tuple if getattr(kind, "__origin__", None) is tuple else list
    return (lambda values: [write(one) for one in values]), (lambda values: made(read(one) for one in values))


def _each_value(convert: Convert, values: dict[str, Any]) -> dict[str, Any]:
    return {name: convert(value) for name, value in values.items()}


def _unless_none(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _without_none(hint: Any) -> Any:
    kinds = [one for one in get_args(hint) if one is not NoneType]
    return kinds[0] if NoneType in get_args(hint) and len(kinds) == 1 else hint
