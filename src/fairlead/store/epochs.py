"""Is the data in the store what this process knows? If not, it is closed until an operator accepts it."""

import secrets
from typing import Literal

from fairlead.errors import InvalidInput, StoreFault, StoreLost
from fairlead.store.membership import Found, unreadable
from fairlead.store.session import Part

FIELDS = ("schema", "epoch", "opening", "beat", "sealed", "opens_at")
SEALED_WHEN = ("gone", "rolled_back")  # not when it is another namespace: that may be healthy, and not ours

REFUSALS = {
    "not_empty": "the namespace is not empty: `fairlead open --restored` accepts the data that is there",
    "empty": "the namespace is empty: restore the data, or accept that it is lost by `fairlead open --new`",
    "restoring": "it is being restored, or that was interrupted: run `fairlead restore` again",
}


def new_token() -> str:
    """Makes an epoch unique."""
    return secrets.token_hex(8)


class Epochs(Part):
    """The data of one namespace, as one connection knows it."""

    async def check(self, *, confirmed: bool = False) -> Found:
        """Raises StoreLost when the data is not what is known. `confirmed`: replicas have what was found."""
        found, problem = await self._judge(confirmed=confirmed)
        if problem:
            raise problem
        return found

    async def join(self) -> Found:
        """Works on the data if it is what is known, or was accepted since; raises StoreLost if not."""
        found, problem = await self._judge(confirmed=True)
        if problem and problem.standing != "reopened":
            raise problem
        self._connection.membership.join(found)
        return found

    async def expect(self, beat: int) -> None:
        """Raises StoreLost when what was joined is older than this beat, which was remembered elsewhere."""
        membership = self._connection.membership
        membership.beat = max(membership.beat, beat)
        await self.check()

    async def seal(self) -> None:
        """Closes it to everybody, including processes that start now and know nothing of the loss."""
        await self._connection.run("seal", *self._connection.membership.known)

    async def accept(self, how: Literal["new", "restored"], hold_ms: int, made: int = 0) -> float:
        """An operator accepts what a loss has left; returns in how many seconds the namespace opens.

        `new`: that there is no data; `restored`: data that is older or other than before. `hold_ms`: for how
        long after the loss was noticed handlers from before may run. `made`: the greatest number of a task or
        job that the history knows.
        """
        answer = await self._connection.run("accept", how, new_token(), hold_ms, made)
        if refused := REFUSALS.get(answer["answer"]):
            raise InvalidInput(f"--{how}", refused)
        self._connection.membership.join(Found())  # whatever it knew: it looks again
        return (int(answer["opens_at"]) - int(answer["now"])) / 1000

    async def _judge(self, *, confirmed: bool = False) -> tuple[Found, StoreLost | None]:
        membership = self._connection.membership
        beat = membership.beat  # while the answer is under way, other calls may learn of later ones
        found = await self.look(confirmed=confirmed)
        return found, membership.judge(found, beat)

    async def look(self, *, confirmed: bool = False) -> Found:
        """Whatever this process knows. `confirmed`: replicas have it too, so that it may be relied on."""
        # on the connection that acts use: it may be lost while the client opens another one for itself
        connection = self._connection
        values = await connection.call("HMGET", connection.keys.meta, *FIELDS, confirmed=confirmed)
        found = zip(FIELDS, values, strict=True)
        facts = {
            field: value.decode(errors="backslashreplace") for field, value in found if value is not None
        }
        for field, value in unreadable(facts).items():
            raise StoreFault(
                f"Namespace {connection.keys.namespace!r} was edited: field {field} of its record is "
                f"{value!r}, which is not a whole number. Run `fairlead doctor`."
            )
        if "opens_at" not in facts:
            return Found.of(facts)
        seconds, micros = await connection.call("TIME")
        return Found.of(facts | {"now": int(seconds) * 1000 + int(micros) // 1000})
