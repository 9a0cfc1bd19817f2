"""Pages of limits: by name or by pressure, those that contain a text, or are in some state.

By pressure, those that are waited for or held come first, in the order of the latest forecast, then all
others by name. The order changes with each forecast: a limit may then be on two pages, or on none.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from fairlead.errors import InvalidInput
from fairlead.model.limit import Limit
from fairlead.shapes.limit import LimitsQuery, LimitState
from fairlead.store.store import Store

AT_ONCE = 200  # limits that are read together: other requests are served in between
LOOKED_AT = 5_000  # limits, for one page
BY_PRESSURE, BY_NAME = "pressure:", "name:"  # how cursors begin when the order is that of the pressure

Some = list[tuple[Limit | None, str]]  #: limits, each with the cursor behind it; None: it was deleted

IN_STATE: dict[LimitState | None, Callable[[Limit], bool]] = {
    None: lambda limit: True,
    "waiting": lambda limit: limit.waiting > 0,
    "full": lambda limit: not limit.paused and limit.limit > 0 and limit.room == 0,
    "paused": lambda limit: limit.paused or limit.limit == 0,
}


async def page_of(
    store: Store, after: str, most: int, *, text: str = "", tenant: str | None = None
) -> tuple[list[Limit], str | None]:
    """Up to `most` limits after this name, and the cursor of the next page."""
    found, looked_at = list[Limit](), 0
    while True:
        count = min(most - len(found), AT_ONCE)
        limits, after = await store.limits.page(after, count, text=text, tenant=tenant)
        found, looked_at = found + limits, looked_at + AT_ONCE
        if not after or len(found) == most or (text and looked_at >= LOOKED_AT):
            return found, after or None


async def listed(store: Store, query: LimitsQuery, tenant: str | None) -> tuple[list[Limit], str | None]:
    """The limits of a page with their pressures, and the cursor of the next one."""
    if query.sort == "name" and query.state is None:
        some, cursor = await page_of(store, query.cursor, query.limit, text=query.search or "", tenant=tenant)
        return await _with_pressure(store, some), cursor
    found, looked_at, is_meant = list[Limit](), 0, IN_STATE[query.state]
    async for group in _walk(store, query, tenant):
        for limit, cursor in group:
            if limit is not None and is_meant(limit):
                found.append(limit)
            if len(found) == query.limit:
                return found, cursor
        looked_at += len(group)
        if looked_at >= LOOKED_AT:
            return found, cursor
    return found, None


async def _walk(store: Store, query: LimitsQuery, tenant: str | None) -> AsyncIterator[Some]:
    """All limits behind the cursor, with their pressures, some at a time: no more than may be meant."""
    size = AT_ONCE if query.state or query.search else min(AT_ONCE, query.limit)
    cursor, after, text = query.cursor, query.cursor, (query.search or "").lower()
    if query.sort == "pressure":
        after = ""
        if cursor.startswith(BY_NAME):
            after = cursor.removeprefix(BY_NAME)
        else:
            async for some in _pressed(store, _offset(cursor), text, tenant, size):
                yield some
    prefix = BY_NAME if query.sort == "pressure" else ""
    while True:
        limits, after = await store.limits.page(after, size, text=text, tenant=tenant)
        known = await _with_pressure(store, limits)
        # those with a pressure came first
        yield [(None if prefix and limit.pressure else limit, prefix + limit.full_name) for limit in known]
        if not after:
            return


async def _pressed(store: Store, start: int, text: str, tenant: str | None, size: int) -> AsyncIterator[Some]:
    order = await store.pressures.order(tenant)
    names = order.limits if order else []
    for first in range(start, len(names), size):
        some = names[first : first + size]
        limits = await _with_pressure(store, await store.limits.named(some))
        found = {limit.full_name: limit for limit in limits if text in limit.name.lower()}
        yield [
            (found.get(name), f"{BY_PRESSURE}{number}") for number, name in enumerate(some, start=first + 1)
        ]


async def _with_pressure(store: Store, limits: list[Limit]) -> list[Limit]:
    found = list[Limit]()
    for first in range(0, len(limits), AT_ONCE):
        some = limits[first : first + AT_ONCE]
        pressures = await store.pressures.of([limit.full_name for limit in some])
        found += [replace(limit, pressure=one) for limit, one in zip(some, pressures, strict=True)]
    return found


def _offset(cursor: str) -> int:
    number = cursor.removeprefix(BY_PRESSURE) if cursor else "0"
    if not number.isdecimal() or len(number) > 9:
        raise InvalidInput("cursor", "not returned by a previous page; omit it to start over")
    return int(number)
