"""The data in a store compared with what a process knows: a decision without a store."""

import pytest

from fairlead.errors import StoreLost
from fairlead.store.membership import Found, Membership, Standing, began, judge

MINE, LATER, EARLIER = "1000-a", "2000-b", "500-c"


def found(epoch: str = MINE, opening: str = "first", beat: int = 1_100, **more: object) -> Found:
    return Found.of({"schema": "3", "epoch": epoch, "opening": opening, "beat": beat, "now": 5_000, **more})


CASES: list[tuple[str, Found, Standing]] = [
    ("unchanged", found(), "open"),
    ("others have continued", found(beat=9_999), "open"),
    ("acknowledged changes are missing", found(beat=1_099), "rolled_back"),
    ("nothing is there", Found(now=5_000), "gone"),
    ("somebody has opened an empty one", found(LATER, beat=2_001), "other"),
    ("accepted as new", found(LATER, "new", 2_000), "reopened"),
    ("accepted as it is", found(LATER, "restored", 2_000), "reopened"),
    ("a snapshot of an earlier epoch", found(EARLIER, "restored", 900), "other"),
    ("closed because it was gone", Found.of({"sealed": "gone"}), "gone"),
    ("closed because it went back", found(sealed="rolled_back"), "rolled_back"),
    ("accepted, but leases from before last", found(LATER, "new", 2_000, opens_at=5_001), "opening"),
    ("they have ended", found(LATER, "new", 2_000, opens_at=5_000), "reopened"),
]


def test_the_data_found_is_compared_with_what_is_known(subtests: pytest.Subtests) -> None:
    for seen, standing in [case[1:] for case in CASES]:
        with subtests.test(seen=seen, standing=standing):
            assert judge(MINE, 1_100, seen) == standing


def test_a_new_client_joins_any_namespace_that_is_not_closed(subtests: pytest.Subtests) -> None:
    for seen, standing in [
        (Found(), "open"),
        (found(), "open"),
        (found(LATER, "new"), "open"),
        (Found.of({"sealed": "gone"}), "gone"),
        (found(opens_at=6_000), "opening"),
    ]:
        with subtests.test(seen=seen, standing=standing):
            assert judge("", 0, seen) == standing


def test_an_epoch_contains_the_beat_with_which_it_began() -> None:
    assert (began(MINE), began(""), began("x-1")) == (1_000, 0, 0)


def test_replies_update_the_membership_and_its_fields_are_removed() -> None:
    membership = Membership("default")
    answer = {"answer": "ok", "epoch": MINE, "beat": 1_100}
    membership.hear(answer)
    assert (answer, membership.known) == ({"answer": "ok"}, (MINE, 1_100))
    membership.hear({"answer": "ok", "beat": 1_090})  # it was sent before, and arrived later
    assert membership.known == (MINE, 1_100)


def test_a_refused_act_raises_with_what_to_do_until_the_data_is_back_or_joined() -> None:
    membership = Membership("default")
    membership.join(found())
    with pytest.raises(StoreLost, match="fairlead open --new") as lost:
        membership.hear({"answer": "lost", "now": 5_000})
    assert (lost.value.standing, lost.value.code) == ("gone", "store_lost")
    with pytest.raises(StoreLost, match="fairlead open --new"):
        membership.check()
    assert membership.judge(found()) is None
    membership.check()
    reopened = found(LATER, "restored", 2_000)
    problem = membership.judge(reopened)
    assert problem
    assert problem.standing == "reopened"
    membership.join(reopened)
    membership.check()
    assert membership.known == (LATER, 2_000)


def test_an_act_that_was_sent_before_this_process_joined_is_to_be_repeated() -> None:
    membership = Membership("default")
    membership.join(found(LATER, "new", 2_000))
    lost = {"answer": "lost", "schema": "3", "epoch": LATER, "opening": "new", "beat": 2_000, "now": 5_000}
    with pytest.raises(StoreLost, match="try again"):
        membership.hear(lost)
    membership.check()
