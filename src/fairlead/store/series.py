"""The last hour as a series of samples, which the caretaker notes."""

from collections import Counter

import msgspec

from fairlead.checks import check_whole
from fairlead.model.priority import PRIORITIES, Priority
from fairlead.model.series import EVERY_SECONDS, LONGEST_SECONDS, Sample, Series, points_of
from fairlead.model.stats import Depth
from fairlead.store.session import Part

Counts = dict[str, int] | list[int]  # an empty table of Lua is an empty list


class Row(msgspec.Struct):
    """What the act `sample` writes."""

    depth: tuple[int, int, int]  # by effective priority
    oldest: tuple[int, int, int]  # ms
    submitted: Counts
    waits: Counts  # <bucket>:<priority> -> starts
    ended: Counts  # by status


row_of = msgspec.msgpack.Decoder(Row).decode


class SeriesReader(Part):
    async def sample(self) -> int:
        """Notes a sample, unless there is one of these ten seconds; returns how many it noted."""
        return int((await self._session.run("sample"))["noted"])

    async def last(self, seconds: int = LONGEST_SECONDS) -> Series:
        """The points of the last seconds, the oldest first."""
        check_whole("seconds", seconds, LONGEST_SECONDS)
        self._connection.membership.check()
        key = self._connection.keys.key("samples")
        many = -(-seconds // EVERY_SECONDS) + 1
        rows, now = await self._connection.read(("XREVRANGE", key, "+", "-", "COUNT", many), ("TIME",))
        since = self._session.instant(now) - 1000 * (seconds + EVERY_SECONDS)
        entries = [(int(name.partition(b"-")[0]), fields[1]) for name, fields in reversed(rows)]
        return Series(points_of([_sample(at, row_of(packed)) for at, packed in entries if at >= since]))


def _sample(at: int, row: Row) -> Sample:
    waits: dict[str, Counter[int]] = {priority.word: Counter() for priority in Priority}
    for name, count in _filled(row.waits).items():
        bucket, _, priority = name.partition(":")
        waits[PRIORITIES[priority].word][int(bucket)] = count
    depths = zip(Priority, row.depth, row.oldest, strict=True)
    return Sample(
        at=at,
        queues={priority.word: Depth(depth, oldest / 1000) for priority, depth, oldest in depths},
        submitted=sum(_filled(row.submitted).values()),
        ended=Counter(_filled(row.ended)),
        waits=waits,
    )


def _filled(counts: Counts) -> dict[str, int]:
    return counts if isinstance(counts, dict) else {}
