"""Which limits are waited for the longest, and what waits and runs of each task type, by the forecast."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from fairlead.model.forecast import Outlook, Pressure, TypeLoad
from fairlead.model.tenants import scope_of
from fairlead.store.connection import text
from fairlead.store.names import cut_route
from fairlead.store.session import Part

ORDER, OF_LIMIT, TYPES = "pressures", "pressure@", "types"  # fields of a forecast

encode = msgspec.json.Encoder().encode
read_pressure = msgspec.json.Decoder(Pressure).decode
read_types = msgspec.json.Decoder(dict[str, TypeLoad]).decode


class Order(msgspec.Struct):
    """Names of limits, the longest waits first; the first `waited_for` make somebody wait."""

    limits: list[str]
    waited_for: int


def texts_of_pressures(outlook: Outlook) -> dict[str, str]:
    """The fields of a forecast that `Pressures` reads."""
    pressures = outlook.pressures
    names = sorted(pressures, key=lambda name: not pressures[name].waiting)
    order = Order(names, sum(bool(pressure.waiting) for pressure in pressures.values()))
    texts = {OF_LIMIT + name: encode(pressure).decode() for name, pressure in pressures.items()}
    return texts | {ORDER: encode(order).decode(), TYPES: encode(outlook.types).decode()}


class Pressures(Part):
    async def order(self, tenant: str | None = None) -> Order | None:
        """Of the limits that are waited for or held; None: there is no forecast now.

        `tenant`: those that it may name.
        """
        (packed,) = await self._read(ORDER)
        order = msgspec.json.decode(packed, type=Order) if packed else None
        if tenant is None or not order or not order.limits:
            return order
        key, scope = self._connection.keys.key("shared"), scope_of(tenant)
        (shared,) = await self._connection.read(("ZMSCORE", key, *order.limits))
        may = [
            is_shared is not None or name.startswith(scope)
            for name, is_shared in zip(order.limits, shared, strict=True)
        ]
        visible = [name for name, visible in zip(order.limits, may, strict=True) if visible]
        return Order(visible, sum(islice(may, order.waited_for)))

    async def of(self, names: Sequence[str]) -> list[Pressure | None]:
        """Of limits by their names in the store; None: nothing waits for it or holds it, or nobody knows."""
        rows = await self._read(*(OF_LIMIT + name for name in names)) if names else []
        return [read_pressure(row) if row else None for row in rows]

    async def types(self, tenant: str | None = None) -> dict[str, TypeLoad] | None:
        """Of the types that wait or run; None: there is no forecast now.

        Of a tenant's tasks it is only known how many wait.
        """
        if tenant is None:
            (packed,) = await self._read(TYPES)
            return read_types(packed) if packed else None
        (kinds,) = await self._connection.read(("HGETALL", self._connection.keys.key("kinds", f"={tenant}")))
        found: dict[str, TypeLoad] = {}
        for route, count in kinds.items():
            load = found.setdefault(cut_route(text(route))[0], TypeLoad(running=None))
            load.waiting["all"] = load.waiting.get("all", 0) + int(count)
        return found

    async def _read(self, *fields: str) -> list[bytes | None]:
        self._connection.membership.check()
        key = self._connection.keys.key("curves")
        (rows,) = await self._connection.read(("HMGET", key, *fields))
        return list(rows)
