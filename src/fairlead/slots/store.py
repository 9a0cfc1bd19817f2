"""A limit on concurrency, agreed on through an object store: each slot is one object."""

import asyncio
import math
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Self, TypeVar

from fairlead.checks import check_name, check_seconds, check_short, check_whole
from fairlead.clock import monotonic, now_ms
from fairlead.errors import Fenced, InvalidInput, LimitFull, SlotStoreUnavailable, UnknownLimit
from fairlead.lease_guard import LeaseGuard
from fairlead.slots.objects import Found, objects_at
from fairlead.slots.record import Record, extended, freed, read_record, state_of, taken, write_record
from fairlead.slots.slot import MOST_SLOTS, Slot, SlotInfo, SlotStatus, read_limit, write_limit

TOP = "concurrency"
SKEW_SECONDS = 5.0
LIMIT_KEPT_SECONDS = 10.0  # for which a limit that was read is taken to be the same
MOST_READS = 32  # at a time
ATTEMPTS = 10  # to write what others are writing too
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two looks for a free slot

T = TypeVar("T")


class SlotStore:
    """`SlotStore("s3://bucket/prefix")`, `file:///folder` or `memory://`, which is for tests.

    `max_skew_seconds` bounds how much the clocks of all users differ: a slot is taken over that much later
    than its lease ends. All users must give the same.
    """

    def __init__(
        self, url: str, *, max_skew_seconds: float = SKEW_SECONDS, clock: Callable[[], int] = now_ms
    ) -> None:
        check_seconds("max_skew_seconds", max_skew_seconds, zero=True)
        self._objects = objects_at(url)
        self._now = clock
        self._skew_ms = round(max_skew_seconds * 1000)
        self._limits: dict[str, tuple[int, float]] = {}  # by group: the limit, and when it was read

    async def __aenter__(self) -> Self:
        """There is nothing to open: `async with` is for code that opens whatever it is given."""
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def try_acquire(
        self, group: str, limit: int, holder: str, lease_seconds: float = 30, *, task_id: str | None = None
    ) -> Slot | None:
        """A free slot, or none. `limit` is that of the group if nobody has set it yet."""
        _check(group)
        check_whole("limit", limit, MOST_SLOTS, least=1)
        check_short("holder", holder)
        check_short("task_id", task_id)
        check_seconds("lease_seconds", lease_seconds)
        numbers = list(range(await self._limit(group, limit)))
        random.shuffle(numbers)  # so that those who come at the same time look at different slots
        lease_ms = round(lease_seconds * 1000)
        for some in _growing(numbers):
            for number, found in zip(some, await self._read(group, some), strict=True):
                record = read_record(found and found.content)
                if record is None or state_of(record, self._now(), self._skew_ms) not in ("free", "expired"):
                    continue
                mine = taken(record, holder, task_id, self._now() + lease_ms, uuid.uuid4().hex)
                if await self._write(group, number, found, mine):
                    return Slot.of(group, number, mine)
        return None

    def acquire(
        self,
        group: str,
        limit: int,
        *,
        holder: str = "",
        wait: float = 0,
        lease_seconds: float = 30,
        task_id: str | None = None,
    ) -> LeaseGuard[Slot]:
        """`async with slots.acquire("gpu", 4, wait=60) as slot:`. LimitFull if none is free in that time."""
        _check(group)
        check_seconds("wait", wait, zero=True)
        check_seconds("lease_seconds", lease_seconds)
        look = partial(
            self.try_acquire, group, limit, holder or f"lease-{uuid.uuid4()}", lease_seconds, task_id=task_id
        )
        return LeaseGuard(self, partial(self._wait, look, wait), round(lease_seconds * 1000), group)

    async def extend(self, slot: Slot, seconds: float) -> Slot:
        """It ends this much later than now, or when it would have ended, if that is later."""
        check_seconds("seconds", seconds)
        record = await self._change(slot, lambda it: extended(it, self._now() + round(seconds * 1000)))
        return Slot.of(slot.group, slot.slot_id, record)

    async def renew(self, lease: Slot, lease_ms: int) -> Slot:
        return await self.extend(lease, lease_ms / 1000)

    async def release(self, lease: Slot) -> None:
        await self._change(lease, lambda it: freed(it, self._now()))

    async def set_limit(self, group: str, limit: int) -> None:
        """Takes effect for everybody within ten seconds. Slots above a lower one are kept until released."""
        _check(group)
        check_whole("limit", limit, MOST_SLOTS)
        await self._set_limit(group, limit, replace=True)

    async def force_release(self, group: str, slot_id: int) -> None:
        """Frees a slot whoever holds it, also one whose object is damaged. Its holder may still work."""
        _check(group)
        check_whole("slot_id", slot_id, MOST_SLOTS - 1)
        for _ in range(ATTEMPTS):
            [found] = await self._read(group, [slot_id])
            if found is None or (record := read_record(found.content)) == freed(record, self._now()):
                raise Fenced(
                    f"Nobody holds slot {slot_id} of {group}: `fairlead concurrency status` shows them."
                )
            if await self._write(group, slot_id, found, freed(record, self._now())):
                return
        raise SlotStoreUnavailable(f"Slot {slot_id} of {group} changes too often: try again.")

    async def cleanup_expired(self, group: str) -> int:
        """Frees the slots whose leases have ended, so that they are seen to be free; how many."""
        _check(group)
        count = 0
        async for number, found in self._all(group):
            record = read_record(found.content)
            if record and state_of(record, self._now(), self._skew_ms) == "expired":
                count += await self._write(group, number, found, freed(record, self._now()))
        return count

    async def status(self, group: str) -> SlotStatus:
        _check(group)
        limit = await self._tried(self._objects.read(_limit_of(group)))
        slots = []
        async for number, found in self._all(group):
            record = read_record(found.content)
            state = state_of(record, self._now(), self._skew_ms)
            it = record or Record(0)
            fence = record.fence if record else None
            slots.append(SlotInfo(number, state, fence, it.worker_id, it.task_id, it.expires_at))
        if limit is None and not slots:
            raise UnknownLimit(f"There is no group {group}: `fairlead concurrency status` shows them.")
        active = sum(slot.state in ("held", "damaged") for slot in slots)
        return SlotStatus(group, limit and read_limit(group, limit.content), active, tuple(slots))

    async def groups(self) -> list[str]:
        return sorted(await self._tried(self._objects.names(TOP)))

    async def _wait(self, look: Callable[[], Awaitable[Slot | None]], seconds: float) -> Slot:
        """Pauses of random length: else those who wait for the same slot would always look together."""
        deadline = monotonic() + seconds
        pause = FIRST_PAUSE
        while (slot := await look()) is None:
            left = deadline - monotonic()
            if left <= 0:
                raise LimitFull()
            await asyncio.sleep(min(left, random.uniform(pause / 2, pause)))
            pause = min(LONGEST_PAUSE, 2 * pause)
        return slot

    async def _change(self, slot: Slot, change: Callable[[Record], Record]) -> Record:
        """Of the record of a lease that is still ours, though it may be over. Raises Fenced."""
        for _ in range(ATTEMPTS):
            [found] = await self._read(slot.group, [slot.slot_id])
            record = read_record(found and found.content)
            if record is None or record.token != slot.token:
                raise Fenced()
            changed = change(record)
            if await self._write(slot.group, slot.slot_id, found, changed):
                return changed
        raise SlotStoreUnavailable(f"Slot {slot.slot_id} of {slot.group} changes too often: try again.")

    async def _limit(self, group: str, limit: int) -> int:
        known, read_at = self._limits.get(group, (0, -math.inf))
        if monotonic() - read_at > LIMIT_KEPT_SECONDS:
            known = await self._set_limit(group, limit, replace=False)
        return known

    async def _set_limit(self, group: str, limit: int, *, replace: bool) -> int:
        """The limit from now on. Without `replace`, one that is set already stands."""
        name = _limit_of(group)
        for _ in range(ATTEMPTS):
            found = await self._tried(self._objects.read(name))
            if found and not replace:
                limit = read_limit(group, found.content)
            elif not await self._tried(
                self._objects.write(name, write_limit(limit), found and found.version)
            ):
                continue
            self._limits[group] = limit, monotonic()
            return limit
        raise SlotStoreUnavailable(f"The limit of {group} changes too often: try again.")

    async def _all(self, group: str) -> AsyncIterator[tuple[int, Found]]:
        names = await self._tried(self._objects.names(f"{TOP}/{group}/slots"))
        numbers = sorted(int(name) for name in names if name.isdecimal() and int(name) < MOST_SLOTS)
        for start in range(0, len(numbers), MOST_READS):
            some = numbers[start : start + MOST_READS]
            for number, found in zip(some, await self._read(group, some), strict=True):
                if found:
                    yield number, found

    async def _read(self, group: str, numbers: Sequence[int]) -> list[Found | None]:
        reads = (self._objects.read(_slot_of(group, number)) for number in numbers)
        return await self._tried(asyncio.gather(*reads))

    async def _write(self, group: str, number: int, found: Found | None, record: Record) -> bool:
        """Whether the object says this now: a request that was sent again conflicts with itself."""
        content = write_record(record)
        name = _slot_of(group, number)
        if await self._tried(self._objects.write(name, content, found and found.version)):
            return True
        there = await self._tried(self._objects.read(name))
        return there is not None and there.content == content

    async def _tried(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except OSError as problem:
            raise SlotStoreUnavailable(
                f"The store of the slots cannot be used ({problem}): try again."
            ) from None


def _slot_of(group: str, number: int) -> str:
    return f"{TOP}/{group}/slots/{number}"


def _limit_of(group: str) -> str:
    return f"{TOP}/{group}/limit"


def _check(group: str) -> None:
    check_name("group", group)
    if group.startswith("."):
        raise InvalidInput("group", "begins with a dot: use another name")


def _growing(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """One, then twice as many each time: few reads while slots are free, few rounds when all are held."""
    start, size = 0, 1
    while start < len(numbers):
        yield numbers[start : start + size]
        start, size = start + size, min(MOST_READS, 2 * size)
