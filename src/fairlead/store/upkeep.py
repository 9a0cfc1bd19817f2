"""What only the caretaker does: be elected, name lost workers, forget what has ended."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from fairlead.blobs.shelf import Need, Owner
from fairlead.checks import check_ms, check_name
from fairlead.model.worker import LostWorker
from fairlead.store.claims import needs_of
from fairlead.store.epochs import Epochs
from fairlead.store.session import Part

#: What one process at a time does; the name is that of the key which says who.
Role = Literal["caretaker", "recorder"]


@dataclass(frozen=True, slots=True)
class Memory:
    """What the server said of its memory, in bytes; None where it does not say."""

    used: int | None = None
    most: int | None = None  # maxmemory; 0: no limit
    policy: str | None = None
    pressed: int | None = None  # bytes left to what has finished, because memory is nearly full


class Upkeep(Part):
    async def elect(self, who: str, lease_ms: int, role: Role = "caretaker") -> str:
        """Who has the role now: `who`, unless another one has."""
        check_name("who", who)
        check_ms("lease_ms", lease_ms)
        return str((await self._session.run("elect", role, who, lease_ms)).get("elected", ""))

    async def resign(self, who: str, role: Role = "caretaker") -> None:
        """Another one may be elected at once."""
        await self._session.run("elect", role, who, 0)

    async def bury(self) -> list[LostWorker]:
        """The workers that have fallen silent; each is returned once, to one caller."""
        rows = (await self._session.run("bury"))["workers"]
        return [LostWorker(row["id"], row["seen"], row["running"]) for row in rows]

    async def forget(self) -> int:
        """Forgets up to 128 ended records of each kind, over bounds or expired; returns the most of one."""
        return int((await self._session.run("forget"))["forgotten"])

    async def sweep(self) -> tuple[int, bool]:
        """Removes left-over entries from a part of the lists: how many, and whether a list has more."""
        answer = await self._session.run("sweep")
        return answer["removed"], answer["more"]

    async def inspect(self) -> Memory:
        """Reads the memory use of the server, and keeps it for other acts."""
        answer = await self._session.run("inspect")
        return Memory(*(answer.get(name) for name in ("used", "most", "policy", "pressed")))

    async def tidy_blobs(self) -> int:
        """Deletes blobs whose time is over, from a part of all; returns how many, and claims on them."""
        return await self._session.blobs.tidy(self._needs)

    async def _needs(self, owners: Collection[Owner]) -> Mapping[Owner, Need]:
        needs = await needs_of(self._connection, owners)
        await Epochs(self._session).check()  # a store that has lost its data knows none of them
        return needs
