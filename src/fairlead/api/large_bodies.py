"""Bodies of many items, read a few items at a time so that other requests are served in between."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from fairlead.api.problems import BodyTooLarge, InvalidBody
from fairlead.api.request import MOST_BODY, where_and_what

# Bytes of items that are decoded, checked and packed in one go: usually a few ms, at worst less than 50.
AT_ONCE = 256 * 1024
MOST_ITEM = MOST_BODY + 128 * 1024  # parameters, or a result, and the fields beside them

T = TypeVar("T")


def size_of(item: msgspec.Raw) -> int:
    return len(memoryview(item))


def in_groups(items: Sequence[msgspec.Raw]) -> Iterator[Sequence[msgspec.Raw]]:
    """Items that are read and sent to the store together; a large item is a group by itself."""
    first, size = 0, 0
    for i, item in enumerate(items):
        if i > first and size + size_of(item) > AT_ONCE:
            yield items[first:i]
            first, size = i, 0
        size += size_of(item)
    if first < len(items):
        yield items[first:]


async def taking_turns(groups: Iterable[T]) -> AsyncIterator[T]:
    """The same groups; other tasks of the event loop run before each."""
    for group in groups:
        await asyncio.sleep(0)
        yield group


def decode_item(item: msgspec.Raw, decoder: msgspec.json.Decoder[T], where: str = "") -> T:
    """Raises BodyTooLarge or InvalidBody; `where` is the path of the item in the body."""
    if size_of(item) > MOST_ITEM:
        raise BodyTooLarge(MOST_ITEM)
    try:
        return decoder.decode(item)
    except msgspec.ValidationError as problem:
        name, why = where_and_what(problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        name, why = "body", f"is not JSON ({problem}): send it in UTF-8"
    if where:
        name = where if name == "body" else f"{where}.{name}"
    raise InvalidBody([(name, why)])
