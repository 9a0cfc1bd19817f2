"""The ledgers of the places, as in `rules.fairness`, without a walk over all accounts at each start."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from fairlead.rules import fairness
from fairlead.rules.values import Place, Policy
from fairlead.simulate.values import PLACES, Snapshot


class Ledger:
    """A finish tag that V has passed changes nothing, so it may stay where the rules delete it."""

    __slots__ = ("earlier", "fin", "greatest", "v", "waiting")

    def __init__(self, v: int = 0, earlier: Mapping[str, int] | None = None) -> None:
        self.v = v
        self.earlier = earlier or {}  #: finish tags that were there from the beginning, shared by all forks
        self.fin: dict[str, int] = {}
        self.greatest = max(self.earlier.values(), default=0)
        self.waiting = 0

    def fork(self) -> Ledger:
        copy = Ledger.__new__(Ledger)
        copy.v, copy.earlier, copy.fin = self.v, self.earlier, self.fin.copy()
        copy.greatest, copy.waiting = self.greatest, self.waiting
        return copy

    def next_tag(self, account: str) -> int:
        tag = self.fin.get(account)
        if tag is None:
            tag = self.earlier.get(account, self.v)
        return tag if tag > self.v else self.v

    def reserve(self, account: str, stride: int) -> int:
        tag = self.next_tag(account)
        self.fin[account] = fin = tag + stride
        if fin > self.greatest:
            self.greatest = fin
        return tag

    def run_dry(self) -> None:
        self.v = max(self.v, self.greatest)
        self.fin, self.earlier = {}, {}


class Shares(fairness.Shares):
    """What accounts cost is learnt as in the rules."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.by_place: list[Ledger] = []  #: by the number of the place; two may share one

    @classmethod
    def of(cls, snapshot: Snapshot) -> Shares:
        shares = cls(snapshot.policy)
        shares.pace, shares.mean = dict(snapshot.pace), snapshot.mean
        made: dict[Place, Ledger] = {}
        for place in PLACES:
            name = shares.name(place)
            known = snapshot.ledgers.get(name, fairness.Ledger())
            made.setdefault(name, Ledger(known.v, known.fin))
            shares.by_place.append(made[name])
        return shares

    def fork(self) -> Shares:
        copy = Shares(self._policy)
        copy.pace, copy.mean = ChainMap({}, self.pace), self.mean  # type: ignore[assignment]
        copies = {id(ledger): ledger.fork() for ledger in self.by_place}
        copy.by_place = [copies[id(ledger)] for ledger in self.by_place]
        return copy
