"""Pipelines and task types that were declared, by a file or by code; a file takes precedence."""

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from fairlead.settings.pipelines import Stages
from fairlead.store.connection import text
from fairlead.store.session import Session

as_stages = msgspec.json.Decoder(Stages).decode
ORIGINS = ("file", "code")


class Pipelines:
    """There may be thousands of either: only what is asked for is read."""

    def __init__(self, session: Session) -> None:
        self._connection = session.connection

    async def get(self, name: str) -> Stages | None:
        return (await self._read([name])).get(name)

    async def names(self) -> list[str]:
        return await self._declared("pipelines")

    async def page(self, after: str, count: int) -> tuple[dict[str, Stages], str]:
        """Those after this name, and the name to continue from: "" when there are no more."""
        names = await self.names()
        first = bisect_right(names, after)
        some = names[first : first + count]
        return await self._read(some), some[-1] if first + count < len(names) else ""

    async def task_types(self) -> list[str]:
        return await self._declared("types")

    async def task_types_among(self, names: Iterable[str]) -> set[str]:
        """Those of these names that are task types."""
        wanted = [*names]
        return {name for name, settings in await self._look_up("types", wanted) if settings is not None}

    async def _declared(self, key: str) -> list[str]:
        (fields,) = await self._connection.read(("HKEYS", self._connection.keys.key(key)))
        return sorted({text(field).partition(":")[2] for field in fields})

    async def _read(self, names: list[str]) -> dict[str, Stages]:
        found: dict[str, Stages] = {}
        for name, stages in await self._look_up("pipelines", names):
            if stages is not None:
                found.setdefault(name, as_stages(stages))
        return found

    async def _look_up(self, key: str, names: list[str]) -> list[tuple[str, bytes | None]]:
        """By name, once for each origin."""
        if not names:
            return []
        fields = [(f"{origin}:{name}", name) for name in names for origin in ORIGINS]
        (values,) = await self._connection.read(
            ("HMGET", self._connection.keys.key(key), *(field for field, _ in fields))
        )
        return [(name, value) for (_, name), value in zip(fields, values, strict=True)]
