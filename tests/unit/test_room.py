"""How claimers of several namespaces divide the free slots of their process."""

from fairlead.worker.room import Room, Share


class Claimer:
    def __init__(self, room: Room) -> None:
        self.running = 0
        self.woken = 0
        self.share: Share = room.share(lambda: self.running, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def start(self, count: int = 1) -> list[bool]:
        started = []
        for _ in range(count):
            started.append(self.share.take())
            self.running += started[-1]
        return started


def claimers(capacity: int, count: int) -> list[Claimer]:
    room = Room(capacity)
    return [Claimer(room) for _ in range(count)]


def parts(*some: Claimer) -> list[int]:
    return [one.share.part for one in some]


def test_one_alone_has_all_slots() -> None:
    (alone,) = claimers(4, 1)
    alone.start(3)
    assert parts(alone) == [1]


def test_free_slots_are_divided_equally_and_the_rest_goes_to_those_who_started_least() -> None:
    a, b, c = claimers(8, 3)
    assert parts(a, b, c) == [3, 3, 2]
    a.start(2)
    b.start(1)
    assert parts(a, b, c) == [1, 2, 2]


def test_a_single_slot_goes_round() -> None:
    a, b = claimers(1, 2)
    order = []
    for _ in range(6):
        (turn,) = [one for one in (a, b) if one.share.part == 1]
        turn.start()
        assert parts(a, b) == [0, 0]
        turn.running = 0
        order.append(turn)
    assert order == [a, b, a, b, a, b]


def test_one_without_work_leaves_its_part_and_gains_no_credit() -> None:
    a, b = claimers(2, 2)
    b.share.may_claim = False
    assert (a.woken, parts(a, b)) == (1, [2, 0])
    for _ in range(50):
        a.start(2)
        a.running = 0
    b.share.may_claim = True
    b.start(2)
    b.running = 0
    a.start(1)
    assert parts(a, b) == [1, 0], "b would be 50 starts behind"


def test_slots_that_were_asked_for_are_not_asked_for_twice() -> None:
    a, b = claimers(3, 2)
    a.share.asked = 2
    assert parts(a, b) == [1, 0]
    b.share.asked = 1
    assert parts(a, b) == [0, 0]


def test_what_was_not_asked_for_finds_no_slot_when_all_are_taken() -> None:
    a, b = claimers(2, 2)
    assert (a.start(1), b.start(2)) == ([True], [True, False])


def test_the_others_are_woken_when_slots_become_free() -> None:
    a, b = claimers(2, 2)
    a.start(2)
    a.share.notice()
    assert b.woken == 0
    a.running = 1
    a.share.notice()
    assert (a.woken, b.woken) == (0, 1)
