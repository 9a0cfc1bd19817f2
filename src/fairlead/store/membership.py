"""What a process knows of its namespace, and whether the data in the store is still that.

A namespace has an epoch, made when it is opened for the first time and again when an operator accepts what a
loss has left, and a beat that rises with every act that writes. A process remembers the epoch it has joined
and the highest beat it has seen. Every act names both, and the store refuses to work on anything older.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairlead.errors import StoreLost

Standing = Literal["open", "reopened", "opening", "gone", "rolled_back", "other"]

ACCEPTED = ("new", "restored")  # how an operator opens a namespace again

MESSAGES: dict[Standing, str] = {
    "gone": (
        "The store has lost its data, namespace {namespace!r} is gone: rebuild it from the history with "
        "`fairlead restore`, put its files back, or begin with an empty namespace: `fairlead open --new`."
    ),
    "rolled_back": (
        "The store has gone back to an older state of namespace {namespace!r}, so that changes it had "
        "acknowledged are missing: repair it from the history with `fairlead restore`, or accept it as it "
        "is: `fairlead open --restored`."
    ),
    "other": (
        "The store holds another namespace {namespace!r} than the one used so far: check the address, "
        "restore the data, or accept what is there: `fairlead open --restored`."
    ),
    "opening": (
        "Namespace {namespace!r} was opened again: work continues within {seconds:.0f} s, when all leases "
        "from before have ended."
    ),
    "reopened": "Namespace {namespace!r} was opened again, and this process is about to join it: try again.",
}


WHOLE = re.compile(r"[0-9]{1,18}")


def unreadable(facts: Mapping[str, str]) -> dict[str, str]:
    """The fields of a namespace's record, edited by hand, that do not say which data this is."""
    fields = ((field, facts.get(field)) for field in ("beat", "opens_at"))
    return {field: value for field, value in fields if value is not None and not WHOLE.fullmatch(value)}


@dataclass(frozen=True, slots=True)
class Found:
    """What the store says of the namespace."""

    schema: int = 0  # 0: it was never opened
    epoch: str = ""
    opening: str = ""  # first, new, restored
    beat: int = 0
    sealed: str = ""  # why it is closed to everybody
    opens_at: int = 0  # ms; 0: it is open
    now: int = 0  # ms

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Found":
        return cls(
            schema=int(facts.get("schema") or 0),
            epoch=facts.get("epoch") or "",
            opening=facts.get("opening") or "",
            beat=int(facts.get("beat") or 0),
            sealed=facts.get("sealed") or "",
            opens_at=int(facts.get("opens_at") or 0),
            now=int(facts.get("now") or 0),
        )

    @property
    def is_open(self) -> bool:
        return self.schema > 0

    @property
    def seconds_left(self) -> float:
        return max(0, self.opens_at - self.now) / 1000


def judge(epoch: str, beat: int, found: Found) -> Standing:
    """The data compared with what is known: this epoch, and this beat of it; "" and 0: nothing is known."""
    if found.sealed:
        return "gone" if found.sealed == "gone" else "rolled_back"
    if found.seconds_left:
        return "opening"
    if not epoch:
        return "open"
    if not found.epoch:
        return "gone"
    if found.epoch == epoch:
        return "open" if found.beat >= beat else "rolled_back"
    if found.opening in ACCEPTED and began(found.epoch) > began(epoch):
        return "reopened"
    return "other"


def began(epoch: str) -> int:
    """The beat with which an epoch began: higher than all of the epochs before."""
    number = epoch.partition("-")[0]
    return int(number) if number.isdigit() else 0


class Membership:
    """Of one process, or one connection, in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.epoch = ""
        self.beat = 0
        # The reason, while the data is not what this process knows.
        self._lost: tuple[str, Standing] | None = None

    @property
    def known(self) -> tuple[str, int]:
        """What an act has to find, or it is refused."""
        return self.epoch, self.beat

    @property
    def problem(self) -> StoreLost | None:
        return StoreLost(*self._lost) if self._lost else None

    def hear(self, answer: dict[str, Any]) -> None:
        """Learns from the reply to an act, and removes from it what is not the act's."""
        if answer["answer"] == "lost":
            found = Found.of(answer)
            # when nothing is wrong by now, this process has joined it since the act was sent
            raise self.judge(found) or StoreLost(*self._words("reopened", found))
        epoch, beat = answer.pop("epoch", ""), answer.pop("beat", 0)
        self.epoch = self.epoch or epoch
        self.beat = max(self.beat, beat)

    def judge(self, found: Found, beat: int | None = None) -> StoreLost | None:
        """The problem, if there is one. A namespace that was opened again has to be joined first.

        `beat`: that was known when it was asked for; by default the latest.
        """
        standing = judge(self.epoch, self.beat if beat is None else beat, found)
        self._lost = None if standing == "open" else self._words(standing, found)
        return self.problem

    def recall(self, epoch: str, beat: int) -> None:
        """Something else remembers the namespace, too: the later of both counts."""
        if epoch == self.epoch:
            self.beat = max(self.beat, beat)
        elif began(epoch) > began(self.epoch):
            self.epoch, self.beat = epoch, beat

    def join(self, found: Found) -> None:
        """Works on what was found from now on."""
        self.epoch, self.beat, self._lost = found.epoch, found.beat, None

    def check(self) -> None:
        """Raises StoreLost while the data is not what is known; for callers that only read."""
        if problem := self.problem:
            raise problem

    def _words(self, standing: Standing, found: Found) -> tuple[str, Standing]:
        words = MESSAGES[standing].format(namespace=self.namespace, seconds=max(1, found.seconds_left))
        return words, standing
