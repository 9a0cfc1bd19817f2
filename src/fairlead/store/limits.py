"""Limits: defining them, watching them, and taking units of one without a task."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import uuid_utils

from fairlead import errors
from fairlead.checks import check_ms, check_name, check_short
from fairlead.clock import monotonic
from fairlead.model.accounts import account_of, weight_of
from fairlead.model.limit import Lease, Limit, Slot, check_wish, limit_arguments
from fairlead.model.priority import priority_named
from fairlead.model.reports import Grant
from fairlead.model.tenants import cut_name, scope_of
from fairlead.settings import Rate, Slots
from fairlead.store.connection import Answer, pack
from fairlead.store.replies import expect_ok
from fairlead.store.session import Part

NET_SECONDS = 5.0  # a call may be lost: ask at least this often
LEAST_PAUSE = 0.02  # seconds between two requests without a call in between


class Limits(Part):
    async def set(
        self, name: str, wanted: Slots | Rate, *, tenant: str | None = None, shared: bool | None = None
    ) -> None:
        """Defines or changes a limit, with effect at once. 0 slots pause it. `tenant`: its owner.

        `shared`: every tenant may name it, or none; None: as before.
        """
        arguments = limit_arguments(name, wanted)
        if wanted.shared:
            shared = True
        if tenant is not None and shared:
            raise errors.InvalidInput("shared", "a limit of one tenant cannot be shared with others")
        sharing = "" if shared is None else int(shared)
        await self._session.run("set_limit", scope_of(tenant), name, *arguments, sharing)

    async def pause(self, name: str, paused: bool = True, *, tenant: str | None = None) -> None:
        check_name("name", name)
        await self._session.run("pause", "limit", scope_of(tenant) + name, int(paused))

    async def delete(self, name: str, *, tenant: str | None = None) -> None:
        """Raises LimitInUse while a task that has not ended, a lease or a declaration needs it."""
        check_name("name", name)
        cursor = taken = ""
        while True:  # page by page: any number of tasks may run
            answer = await self._session.ask("delete_limit", scope_of(tenant), name, cursor, taken)
            if expect_ok(answer, "more")["answer"] == "ok":
                return
            cursor, taken = answer["cursor"], answer["taken"]

    async def page(
        self, after: str = "", count: int = 200, *, text: str = "", tenant: str | None = None
    ) -> tuple[list[Limit], str]:
        """Limits by name, those after `after`, and the name to continue from: "" when there are no more.

        `text`: those that contain it, in any case; a page may then be short or empty although there are more.
        `tenant`: those that it may name, which are the shared ones and its own.
        """
        answer = await self._session.run("list_limits", scope_of(tenant), "", after, count, text.lower())
        return [_limit(row) for row in answer["limits"]], answer.get("last", "")

    async def named(self, names: Sequence[str]) -> list[Limit]:
        """Those of up to 200 stored names (`tenant/name`) that exist."""
        answer = await self._session.run("list_limits", "", pack(list(names)), "", 0, "")
        return [_limit(row) for row in answer["limits"]]

    async def pages(self, *, tenant: str | None = None) -> AsyncIterator[list[Limit]]:
        """All of them, page by page, so that other callers are served in between."""
        limits, after = await self.page(tenant=tenant)
        yield limits
        while after:
            limits, after = await self.page(after, tenant=tenant)
            yield limits

    async def all(self, *, tenant: str | None = None) -> list[Limit]:
        return [limit async for page in self.pages(tenant=tenant) for limit in page]

    async def count(self) -> int:
        """Of the operator and all tenants together."""
        (count,) = await self._connection.read(("ZCARD", self._connection.keys.key("limits")))
        return int(count)

    async def get(
        self,
        name: str,
        lease_id: str | None = None,
        *,
        tenant: str | None = None,
        only_own_slots: bool = False,
    ) -> Limit:
        """With up to 100 of its holders; with `lease_id` (the id of a task), at most that one.

        `tenant`: what it means by this name. `only_own_slots`: without holders of other tenants.
        """
        check_name("name", name)
        if lease_id is not None:
            check_name("lease_id", lease_id)
        whose = tenant if only_own_slots and tenant is not None else ""
        answer = await self._session.run("show_limits", scope_of(tenant), name, lease_id or "", whose)
        slots = sorted(map(_slot, answer["slots"]), key=lambda slot: (not slot.is_task, slot.lease_id))
        return replace(_limit(answer["limit"]), slots=tuple(slots), has_more_slots=answer["more_slots"])

    async def acquire(
        self,
        name: str,
        *,
        units: int = 1,
        lease_ms: int = 30_000,
        holder: str = "",
        lease_id: str | None = None,
        wait_seconds: float = 0,
        priority: str = "medium",
        user_id: str | None = None,
        tenant: str | None = None,
        by_tenant: bool = False,
        keep_place: bool = False,
    ) -> Lease:
        """Units without a task; raises LimitFull when there are none within `wait_seconds`.

        It waits in line with the tasks that need the limit, by priority, then by fair share. If the answer
        is lost, repeat with the same `lease_id`. With `keep_place`, a caller that repeats it within a few
        seconds after LimitFull keeps its place. `by_tenant`: the tenant itself asks, so name and lease are
        in its scope.
        """
        check_wish(units, lease_ms, holder, lease_id, wait_seconds, priority, user_id)
        check_name("name", name)
        check_short("tenant", tenant)
        lease_id, settings = lease_id or str(uuid_utils.uuid7()), self._session.settings
        owner = tenant if by_tenant else None
        scope, rank = scope_of(owner), int(priority_named(priority))
        account, weight = account_of(tenant, user_id, settings), repr(weight_of(tenant, user_id, settings))

        def ask(wait_ms: int) -> Awaitable[Answer]:
            wanted = (scope, name, units, lease_ms, scope + lease_id, holder)
            return self._session.ask("acquire", *wanted, wait_ms, rank, account, weight)

        try:
            answer = await self._wait_in_line(ask, scope + lease_id, wait_seconds, keep_place)
        except asyncio.CancelledError:
            # it may be in line, or have its units already: nobody would give them back
            await asyncio.shield(asyncio.ensure_future(self._withdraw(name, lease_id, owner)))
            raise
        return Lease(lease_id, name, answer["fence"], answer["ends"], owner)

    async def _wait_in_line(
        self, ask: Callable[[int], Awaitable[Answer]], lease: str, seconds: float, keep_place: bool
    ) -> Answer:
        ends = monotonic() + seconds
        while True:
            left = max(0.0, ends - monotonic())
            stays = int(NET_SECONDS * 1000) if keep_place else 0
            answer = await ask(max(stays, round(left * 1000)))
            if answer["answer"] != "waiting":
                return expect_ok(answer)
            if not left:
                raise errors.LimitFull()
            look = answer["ask_in"] / 1000 if "ask_in" in answer else NET_SECONDS
            pause = min(left, NET_SECONDS, max(look, LEAST_PAUSE))
            await self._session.next_word("granted", lease, pause)

    async def _withdraw(self, name: str, lease_id: str, tenant: str | None) -> None:
        with contextlib.suppress(errors.FairleadError):
            await self.release_known(name, lease_id, tenant=tenant)

    async def renew(self, lease: Lease, lease_ms: int = 30_000) -> Lease:
        """The lease with its new end; raises Fenced when it is over."""
        known = lease.limit, lease.lease_id, lease.fence
        return await self.renew_known(*known, lease_ms=lease_ms, tenant=lease.tenant)

    async def release(self, lease: Lease) -> None:
        """Gives the units back; raises Fenced when the lease was over before."""
        await self.release_known(lease.limit, lease.lease_id, lease.fence, tenant=lease.tenant)

    async def renew_known(
        self,
        name: str,
        lease_id: str,
        fence: int | None = None,
        *,
        lease_ms: int = 30_000,
        tenant: str | None = None,
    ) -> Lease:
        """As `renew`, by the id of a lease of this limit; its fence is checked if it is given.

        `tenant`: the tenant that acquired it by itself.
        """
        check_ms("lease_ms", lease_ms)
        holder = pack(_known_lease(name, lease_id, fence, tenant))
        renewed = await self._session.run("renew", holder, lease_ms)
        return Lease(lease_id, name, renewed["fence"], renewed["ends"], tenant)

    async def release_known(
        self, name: str, lease_id: str, fence: int | None = None, *, tenant: str | None = None
    ) -> None:
        """As `release`, by the id of a lease of this limit; its fence is checked if it is given."""
        holders = pack([_known_lease(name, lease_id, fence, tenant)])
        (row,) = (await self._session.run("release", "", holders, 1))["rows"]
        expect_ok(row)

    async def force_release(self, name: str, lease_id: str, *, tenant: str | None = None) -> None:
        """Frees a stuck lease of this limit. What it protects may still run."""
        await self.release_known(name, lease_id, tenant=tenant)


def _known_lease(name: str, lease_id: str, fence: int | None, tenant: str | None) -> dict[str, Any]:
    """A lease as the acts take it, by its id and its limit."""
    check_name("name", name)
    scope = scope_of(tenant)
    return Grant(scope + lease_id, fence).packed() | {"limit": name, "scope": scope}


def _limit(row: Answer) -> Limit:
    tenant, name = cut_name(row["name"])
    return Limit(
        name=name,
        kind=row["kind"],
        limit=row["most"],
        active=row["used"],
        waiting=row["waiting"],
        room=row["room"],
        paused=row["paused"],
        interval_us=row.get("interval"),
        hold=row.get("hold"),
        tenant=tenant,
        shared=row["shared"],
    )


def _slot(row: Answer) -> Slot:
    tenant, lease_id = cut_name(row["id"])
    return Slot(lease_id, row["units"], row["is_task"], row.get("holder") or None, row.get("ends"), tenant)
