"""The slots of a worker process, which the claimers of several namespaces share in turn."""

from collections.abc import Callable


class Room:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.shares: list[Share] = []

    def share(self, running: Callable[[], int], wake: Callable[[], None]) -> "Share":
        """Of one more claimer: how many tasks it runs, and what to call when its part may have changed."""
        self.shares.append(Share(self, running, wake))
        return self.shares[-1]

    @property
    def free(self) -> int:
        """Slots that no task runs in, and for which none was asked."""
        return self.capacity - sum(share.running() + share.asked for share in self.shares)


class Share:
    """What one claimer has of the room. Free slots are divided equally among those that may have something to
    claim; what is left over goes to those that have started the fewest tasks.
    """

    def __init__(self, room: Room, running: Callable[[], int], wake: Callable[[], None]) -> None:
        self.running = running
        self.asked = 0  # tasks, by the claims under way
        self._room = room
        self._wake = wake
        self._taken = 0
        self._may_claim = True
        self._held = 0

    @property
    def is_shared(self) -> bool:
        return len(self._room.shares) > 1

    @property
    def may_claim(self) -> bool:
        """Whether there may be something to claim."""
        return self._may_claim

    @may_claim.setter
    def may_claim(self, may: bool) -> None:
        if may == self._may_claim:
            return
        others = [share._taken for share in self._room.shares if share.may_claim and share is not self]
        if may and others:  # no credit for the time without work
            self._taken = max(self._taken, min(others))
        self._may_claim = may
        self._wake_others()

    @property
    def part(self) -> int:
        """How many slots are this claimer's to fill now; negative: more are in use than there are."""
        free = self._room.free
        turn = sorted(
            (share for share in self._room.shares if share.may_claim), key=lambda share: share._taken
        )
        if free <= 0 or turn in ([], [self]):
            return free
        if self not in turn:
            return 0
        return free // len(turn) + (turn.index(self) < free % len(turn))

    def take(self) -> bool:
        """A slot for a task that was claimed. False: there is none, because it was not asked for."""
        if self.is_shared and sum(share.running() for share in self._room.shares) >= self._room.capacity:
            return False
        self._taken += 1
        return True

    def notice(self) -> None:
        """Lets the others know when it holds fewer slots than before."""
        held = self.running() + self.asked
        if held < self._held:
            self._wake_others()
        self._held = held

    def _wake_others(self) -> None:
        for share in self._room.shares:
            if share is not self:
                share._wake()
