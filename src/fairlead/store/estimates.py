"""What only the estimator does: read what it learns and forecasts from, and keep what comes of it."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, cycle, repeat
from typing import Any

from fairlead.checks import check_ms, check_name
from fairlead.estimates.knowledge import Seen
from fairlead.estimates.picture import Picture
from fairlead.estimates.reading import HEADER
from fairlead.model.forecast import Outlook
from fairlead.store.connection import pack
from fairlead.store.forecasts import texts_of
from fairlead.store.names import PLACES
from fairlead.store.picture import PictureReader
from fairlead.store.pressures import texts_of_pressures
from fairlead.store.records import rows_of
from fairlead.store.session import Part

ENTRIES_AT_ONCE = 100  # of the outbox, each with the events of an act
HEAD = "head"  # of a forecast; its other fields are curves
TAG, SEQ, MS = 16, 13, 12  # digits of a curve (lua/lib/curves.lua)


class Estimates(Part):
    async def now(self) -> int:
        return await PictureReader(self._connection, self._session.clock()).now()

    async def queued(self) -> dict[str, int]:
        """How many tasks wait, by place."""
        connection = self._connection
        fields = [f"queued_{place}" for place in PLACES]
        (counts,) = await connection.read(("HMGET", connection.keys.meta, *fields))
        return {place: int(count or 0) for place, count in zip(PLACES, counts, strict=True)}

    async def picture(self, also: Collection[str] = ()) -> Picture:
        """`also`: limits that are of interest beside those of tasks that wait or run."""
        return await PictureReader(self._connection, self._session.clock()).read(also)

    async def learnt(self) -> dict[str, str]:
        """What was kept by `learn`, by field."""
        connection = self._connection
        found: dict[str, str] = {}
        cursor: Any = 0
        while True:
            command = ("HSCAN", connection.keys.key("learnt"), cursor, "COUNT", ENTRIES_AT_ONCE)
            ((cursor, flat),) = await connection.read(command, paged=True)
            found |= {name.decode(): text.decode() for name, text in zip(flat[::2], flat[1::2], strict=True)}
            if int(cursor) == 0:
                return found

    async def events_after(self, position: str) -> tuple[list[Seen], str]:
        """The next events of the outbox, and the position of the last of them."""
        connection = self._connection
        command = ("XRANGE", connection.keys.key("events"), f"({position}", "+", "COUNT", ENTRIES_AT_ONCE)
        (entries,) = await connection.read(command, paged=True)
        rows = [row for _, fields in entries for row in rows_of(fields[1])]
        seen: list[Seen] = [(row.act, row.at, row.detail) for row in rows]
        return seen, str(entries[-1][0].decode()) if entries else position

    async def save_forecast(
        self,
        who: str,
        fields: Mapping[str, Any],
        ttl_ms: int,
        outlook: Outlook | None = None,
    ) -> bool:
        """Replaces the forecast (`store/lua/lib/forecasts.lua`), unless another caretaker is elected.

        The outlook is for people (`store/forecasts.py`, `store/pressures.py`).
        """
        check_name("who", who)
        check_ms("ttl_ms", ttl_ms)
        texts = {name: value if name == HEAD else text_of_curve(value) for name, value in fields.items()}
        if outlook is not None:
            texts |= texts_of(fields[HEAD]["at"], outlook.limits) | texts_of_pressures(outlook)
        answer = await self._session.ask("save_forecast", who, ttl_ms, pack(texts))
        return bool(answer["answer"] == "ok")

    async def learn(self, who: str, fields: Mapping[str, str]) -> bool:
        """Keeps these fields for the estimator that follows; an empty one is deleted."""
        check_name("who", who)
        answer = await self._session.ask("learn", who, pack(dict(fields)))
        return bool(answer["answer"] == "ok")


def text_of_curve(curve: Sequence[int]) -> str:
    """Numbers of equal length, so that a point is found without reading the others."""
    lengths = chain(repeat(MS, HEADER), cycle((TAG, SEQ, MS, MS, MS)))
    return "".join(
        f"{min(value, 10**digits - 1):0{digits}d}" for value, digits in zip(curve, lengths, strict=False)
    )
