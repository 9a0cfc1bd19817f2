"""The forecast as people see it, kept beside the curves that estimates are read from."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, zip_longest

import msgspec

from fairlead.errors import InvalidInput
from fairlead.estimates.expected import WORKERS
from fairlead.estimates.tracks import MOST_TRACKS
from fairlead.model.forecast import LONGEST_SECONDS, MOST_LIMITS, Forecast, LimitForecast, Track
from fairlead.model.limit import Limit
from fairlead.model.tenants import cut_name, scope_of
from fairlead.store.limits import Limits
from fairlead.store.session import Part, Session

INDEX, OF_LIMIT = "tracks", "tracks@"  # fields of a forecast


class Index(msgspec.Struct):
    """What there is: names of limits, the longest waits first."""

    at: int
    limits: list[str]


def texts_of(at: int, expected: Mapping[str, LimitForecast]) -> dict[str, str]:
    """The fields of a forecast that `Forecasts` reads."""
    index = Index(at, [name for name in expected if name != WORKERS])
    texts = {OF_LIMIT + name: msgspec.json.encode(limit).decode() for name, limit in expected.items()}
    return texts | {INDEX: msgspec.json.encode(index).decode()}


class Forecasts(Part):
    def __init__(self, session: Session, limits: Limits) -> None:
        super().__init__(session)
        self._limits = limits

    async def get(
        self, names: Sequence[str] = (), *, seconds: float = 600, tenant: str | None = None
    ) -> Forecast:
        """Of these limits, or of those with the longest waits; without starts that are farther away.

        A limit of a tenant is named `tenant/name`. `tenant`: the limits that it may name, without what
        identifies tasks of others.
        """
        if len(names) > MOST_LIMITS:
            raise InvalidInput("limits", f"are {len(names)}, at most {MOST_LIMITS} are shown at once")
        if not 0 <= seconds <= LONGEST_SECONDS:
            raise InvalidInput("seconds", f"is not a number of seconds up to {LONGEST_SECONDS:.0f}")
        known = [await self._known(name, tenant) for name in names]
        index = await self._index()
        if index is None:
            return Forecast(at=None, limits=tuple(map(_idle, known)))
        chosen = [limit.full_name for limit in known] or await self._visible(index.limits, tenant)
        workers, *rows = await self._rows([WORKERS, *chosen])
        found = [row or _idle(limit) for row, limit in zip_longest(rows, known) if row or limit]
        if tenant is not None:
            found, workers = [limit.seen_by(tenant) for limit in found], None
        end = index.at + round(1000 * seconds)
        return Forecast(
            at=index.at,
            limits=tuple(limit.until(end) for limit in found),
            workers=workers and workers.until(end),
        )

    async def _known(self, name: str, tenant: str | None) -> Limit:
        owner, plain = (tenant, name) if tenant is not None else cut_name(name)
        return await self._limits.get(plain, tenant=owner, only_own_slots=True)

    async def _index(self) -> Index | None:
        self._connection.membership.check()
        (packed,) = await self._connection.read(("HGET", self._connection.keys.key("curves"), INDEX))
        return msgspec.json.decode(packed, type=Index) if packed else None

    async def _rows(self, names: Iterable[str]) -> list[LimitForecast | None]:
        fields = [OF_LIMIT + name for name in names]
        (rows,) = await self._connection.read(("HMGET", self._connection.keys.key("curves"), *fields))
        return [msgspec.json.decode(row, type=LimitForecast) if row else None for row in rows]

    async def _visible(self, names: Sequence[str], tenant: str | None) -> Sequence[str]:
        """The first that the tenant may name: shared ones, and its own."""
        if tenant is None or not names:
            return names[:MOST_LIMITS]
        key, scope = self._connection.keys.key("shared"), scope_of(tenant)
        (shared,) = await self._connection.read(("ZMSCORE", key, *names))
        may = (
            name
            for name, is_shared in zip(names, shared, strict=True)
            if is_shared is not None or name.startswith(scope)
        )
        return list(islice(may, MOST_LIMITS))


def _idle(limit: Limit) -> LimitForecast:
    """Nothing was held or waited for when the forecast was made."""
    slots = limit.limit if limit.kind == "slots" and limit.limit <= MOST_TRACKS else 0
    return LimitForecast(
        name=limit.name,
        kind=limit.kind,
        limit=limit.limit,
        active=limit.active,
        waiting=limit.waiting,
        paused=limit.paused or not limit.limit,
        tracks=tuple(map(Track, range(slots))),
        more=limit.waiting,
        tenant=limit.tenant,
    )
