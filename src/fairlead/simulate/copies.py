"""A dict that copies its values from another one when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self, TypeVar


class Forkable(Protocol):
    def fork(self) -> Self: ...


Key = TypeVar("Key")
Value = TypeVar("Value", bound=Forkable)


class Copies(dict[Key, Value]):
    """Whoever forks a simulation pays for what the fork touches, not for all that there is.

    Read it by key only: what was not used yet is not listed.
    """

    def __init__(self, originals: Mapping[Key, Value] | None = None) -> None:
        super().__init__()
        self._originals = originals or {}

    def __missing__(self, key: Key) -> Value:
        copy = self[key] = self._originals[key].fork()
        return copy
