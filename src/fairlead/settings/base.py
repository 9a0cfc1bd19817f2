"""What every section of the settings is made of: the types of values, and what may be wrong between keys."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

Key = tuple[str, ...]

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Retries = Annotated[int, Meta(ge=0, le=1000)]
Seconds = Annotated[float, Meta(ge=0)]
SomeSeconds = Annotated[float, Meta(gt=0)]
PriorityName = Literal["high", "medium", "low"]


class Problem(NamedTuple):
    """What is wrong, and with which keys of the section: the refusal names what set them."""

    words: str
    keys: tuple[Key, ...] = ()


def wrong(words: str | None, *names: str) -> Problem | None:
    """A problem of keys that are directly in the section; None without words."""
    return None if words is None else Problem(words, tuple((name,) for name in names))


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration. `problem` says what is wrong between its keys, if anything.

    A comment that begins with `#:` is the meaning of a key on the page of settings; `Example:` ends it where
    the default shows no value.
    """

    def problem(self) -> Problem | None:
        return None
