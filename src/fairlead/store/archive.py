"""What has left the store, as the history keeps it; and lists of what is here and what was, as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from fairlead.errors import HistoryUnavailable
from fairlead.model.task_history import TaskHistory
from fairlead.store.batches import read_in_pieces
from fairlead.store.pages import PAGE_BYTES, Newest, Sought, read_cursor
from fairlead.store.records import made_of

Kind = Literal["task", "job"]
Fields = Mapping[bytes, bytes]

T = TypeVar("T")
INCOMPLETE = "The history does not answer: what has left the store is missing here."


class Found(NamedTuple):
    number: int  # in the list of all tasks or jobs
    id: str
    size: int  # bytes of its record


class Range(NamedTuple):
    """Of numbers, without both; None: no bound."""

    after: int = 0
    before: int | None = None


class Archive(Protocol):
    """Raises HistoryUnavailable."""

    async def record(self, kind: Kind, of: str) -> Fields | None:
        """As the store had it; None: it is not there."""
        ...

    async def range(self, kind: Kind, since: int | None, until: int | None) -> Range:
        """The numbers of what was accepted within these times (ms)."""
        ...

    async def find(
        self,
        kind: Kind,
        wanted: Mapping[str, str | None],
        sought: Sought,
        within: Range,
        count: int,
    ) -> tuple[list[Found], int]:
        """The newest that match, and down to which number was looked; 0: there are no more."""
        ...

    async def records(self, kind: Kind, numbers: Sequence[int]) -> dict[int, Fields]:
        """Those that are still there, without tracebacks."""
        ...

    async def task_history(self, task_id: str) -> TaskHistory: ...

    async def forget(self, task_id: str) -> None:
        """A dead letter that was purged."""
        ...


@dataclass(frozen=True)
class Page(Generic[T]):
    """`warnings`: what is missing."""

    found: list[T]
    cursor: str = ""
    warnings: tuple[str, ...] = ()


async def page_of_all(
    live: Newest[T], archive: Archive | None, limit: int, cursor: str, room: int = PAGE_BYTES
) -> Page[T]:
    """What the store and the archive have, newest first. What both have is as the store has it."""
    if archive is None:
        return Page(*await live.page(limit, cursor, room))
    try:
        return await _Merging(live, archive, room).page(limit, read_cursor(cursor))
    except HistoryUnavailable:
        return Page(*await live.page(limit, cursor, room), (INCOMPLETE,))


class _Merging(Generic[T]):
    def __init__(self, live: Newest[T], archive: Archive, room: int) -> None:
        self._live, self._archive, self._room = live, archive, room
        self._kind: Kind = "job" if live.kind == "job" else "task"

    async def page(self, limit: int, before: int | None) -> Page[T]:
        sought = self._live.sought
        within = await self._archive.range(self._kind, sought.since, sought.until)
        newest = min((one for one in (before, within.before) if one is not None), default=None)
        within = Range(within.after, newest)
        here, here_down_to = await self._here(limit, within)
        gone, gone_down_to = await self._gone(limit, within, set(here))
        down_to = max(here_down_to, gone_down_to)
        numbers = sorted((one for one in (*here, *gone) if one >= down_to), reverse=True)
        chosen = self._fitting(numbers[:limit], gone)
        records = await self._archive.records(self._kind, [one for one in chosen if one in gone])
        past = {one: self._live.make(gone[one].id, record) for one, record in records.items()}
        found = [one for number in chosen if (one := here.get(number) or past.get(number)) is not None]
        last = chosen[-1] if len(chosen) < len(numbers) else down_to
        return Page(found, str(last) if last else "")

    def _fitting(self, numbers: Sequence[int], gone: Mapping[int, Found]) -> list[int]:
        """As many as there is room for, and at least one: a page must make progress."""
        fitting, room = list[int](), self._room
        for number in numbers:
            if room <= 0:
                break
            room -= gone[number].size if number in gone else 0
            fitting.append(number)
        return fitting

    async def _here(self, limit: int, within: Range) -> tuple[dict[int, T], int]:
        """By number, and down to which number it was looked."""
        make = self._live.make

        def numbered(of: str, record: Fields) -> tuple[int, T] | None:
            made = make(of, record)
            return None if made is None else (made_of(record), made)

        live: Any = self._live
        listed: Newest[tuple[int, T]] = replace(live, make=numbered, after=within.after)
        found, behind = await listed.page_before(within.before, limit, self._room)
        return dict(found), behind or 0

    async def _gone(self, limit: int, within: Range, here: set[int]) -> tuple[dict[int, Found], int]:
        """Likewise. What the store still has is left out, also if it does not match any more."""
        live = self._live
        found, down_to = await self._archive.find(self._kind, live.wanted, live.sought, within, limit)
        others = [one for one in found if one.number not in here]
        key = live.connection.keys.key
        commands = [("EXISTS", key(self._kind, one.id)) for one in others]
        exist = await read_in_pieces(live.connection, commands)
        return {one.number: one for one, exists in zip(others, exist, strict=True) if not exists}, down_to
