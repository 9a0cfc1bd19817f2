"""The forecast: when tasks start, and on what that depends."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.estimates.forecast import REPLICAS, estimated_starts, forecast
from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.picture import Listed, Picture, Run, Waiting
from fairlead.estimates.reading import Need, Newcomer, estimate_of
from fairlead.estimates.scene import Scene

NOW = 1_000_000
SLOTS = {"kind": "slots", "limit": "2", "used": "0"}
NEVER = {"low_to_medium": 0, "low_to_high": 0, "medium_to_high": 0, "budget": 5, "tiers": ""}
NEEDS = ("", "outer=1", "inner=1,outer=1")


def picture(waiting: Sequence[Waiting] = (), running: Sequence[Run] = (), **given: Any) -> Picture:
    places = [one.sub[:2] for one in waiting]
    known: dict[str, Any] = {
        "at": NOW,
        "meta": {"seq": "100000"} | {f"queued_{place}": str(places.count(place)) for place in places},
        "policy": NEVER,
        "workers": [Listed("w", "*;", 3, 0)],
        "limits": {"outer": SLOTS, "inner": SLOTS | {"limit": "1"}},
        "waiting": waiting,
        "running": running,
        "audiences": {"draw;": "1"},
        "fins": {},
        "paused": [],
    }
    return Picture(**known | given)


def waits(count: int, place: str = "1n", needs: str = "", stands_for: int = 1) -> Waiting:
    sub = f"{place}:draw;|{needs}"
    return Waiting(
        sub, 100 * count, count, f"task {count}", stands_for, NOW - 1_000, {"priority": int(place[0])}
    )


def runs(name: str, needs: str = "", started: int = NOW - 500) -> Run:
    return Run(name, needs, "w", started, NOW + 600_000, "", {"type": "draw", "priority": 1})


def learnt(*durations: int, submits: int = 0, priority: int = 0) -> Knowledge:
    knowledge = Knowledge()
    ended = [("complete", NOW - 1_000, {"ran": ms, "type": "draw"}) for ms in durations]
    facts = {"type": "draw", "priority": priority, "fair": ""}
    submitted = [("submit", NOW - 200_000 + count * 200_000 // submits, facts) for count in range(submits)]
    knowledge.learn([*ended, *submitted], "1-1")
    return knowledge


def starts_by_task(seen: Picture, knowledge: Knowledge) -> dict[str, list[float]]:
    scene = Scene(seen, knowledge.durations, knowledge.arrivals)
    starts = estimated_starts(scene)
    return {known.task_id: starts[number] for number, known in enumerate(scene.known) if known.task_id}


tasks = st.builds(
    lambda count, place, needs: (count, place, needs),
    st.just(0),
    st.sampled_from(["0n", "1n", "2n"]),
    st.sampled_from(NEEDS),
)


@given(
    ahead=st.lists(tasks, min_size=1, max_size=12),
    behind=st.lists(st.sampled_from(NEEDS), min_size=1, max_size=12),
    busy=st.lists(st.sampled_from(NEEDS), max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_tasks_behind_never_change_an_estimate(
    ahead: list[tuple[int, str, str]], behind: list[str], busy: list[str]
) -> None:
    first = [waits(count, place, needs) for count, (_, place, needs) in enumerate(ahead, 1)]
    more = [waits(count, "2n", needs) for count, needs in enumerate(behind, 1_000)]
    running = [runs(f"run {count}", needs) for count, needs in enumerate(busy)]
    knowledge = learnt(*[500, 2_000, 9_000] * 10)
    alone = starts_by_task(picture(first, running), knowledge)
    together = starts_by_task(picture([*first, *more], running), knowledge)
    assert {name: together[name] for name in alone} == alone


def test_one_slot_serves_one_after_the_other() -> None:
    seen = picture([waits(count) for count in range(1, 6)], [runs("run")], workers=[Listed("w", "*;", 1, 0)])
    starts = starts_by_task(seen, learnt(*[10_000] * 300))
    medians = [statistics.median(starts[f"task {count}"]) for count in range(1, 6)]
    assert medians == pytest.approx([9_500 + 10_000 * count for count in range(5)], rel=0.1)


def test_draws_of_two_tasks_do_not_depend_on_each_other() -> None:
    """The last of many starts after a sum of durations, which varies less than a single one."""
    seen = picture([waits(count) for count in range(1, 62)], workers=[Listed("w", "*;", 1, 0)])
    starts = starts_by_task(seen, learnt(*[1_000, 9_000] * 100))
    last = starts["task 61"]
    assert len(last) == REPLICAS
    assert statistics.mean(last) == pytest.approx(300_000, rel=0.15)
    assert 5_000 < statistics.stdev(last) < 70_000


def test_those_of_better_priority_that_will_come_are_waited_for_too() -> None:
    seen = picture([waits(count, "2n") for count in range(1, 30)], workers=[Listed("w", "*;", 1, 0)])
    calm = starts_by_task(seen, learnt(*[1_000] * 300))
    busy = starts_by_task(seen, learnt(*[1_000] * 300, submits=100))
    assert statistics.median(calm["task 29"]) == pytest.approx(28_000, rel=0.1)
    assert statistics.median(busy["task 29"]) == pytest.approx(2 * 28_000, rel=0.25), "half of the time"


def test_the_future_of_a_trace_changes_nothing() -> None:
    past = learnt(*[1_000] * 50, submits=20)
    seen = picture([waits(count) for count in range(1, 10)])
    now = forecast(seen, past)
    assert forecast(replace(seen), learnt(*[1_000] * 50, submits=20)) == now
    past.learn([("submit", NOW + 5_000, {"type": "draw", "priority": 0, "fair": ""})] * 50, "9-9")
    assert forecast(seen, learnt(*[1_000] * 50, submits=20)) == now


def test_a_newcomer_of_each_place_is_estimated_although_nobody_waits() -> None:
    fields = forecast(picture(running=[runs(f"run {count}") for count in range(3)]), learnt(*[10_000] * 300))
    for place in ("0n", "1n", "2n"):
        *_, p50, p90 = fields[f"{place}:1"]
        assert p50 == pytest.approx(9_500, rel=0.1)
        assert p90 >= p50


def test_a_full_limit_has_a_curve_although_nobody_waits_for_it() -> None:
    full = {"inner": SLOTS | {"limit": "1", "used": "1"}}
    fields = forecast(picture(running=[runs("run", "inner=1")], limits=full), learnt(*[10_000] * 300))
    assert fields["1n@inner"][-2] == pytest.approx(9_500, rel=0.1)
    assert fields["1n:1"][6] == 0


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"workers": []}, id="no worker"),
        pytest.param({"paused": ["draw"]}, id="paused"),
    ],
)
def test_what_nobody_can_start_has_no_estimate(given: dict[str, Any]) -> None:
    assert forecast(picture([waits(1)], **given), learnt(1_000))["1n:1"] == []


def test_a_task_that_stands_for_others_takes_as_long_as_all_of_them() -> None:
    knowledge = learnt(*[10_000] * 300)
    one = picture([waits(1), waits(2, stands_for=10), waits(12)], workers=[Listed("w", "*;", 1, 0)])
    each = picture([waits(count) for count in range(1, 13)], workers=[Listed("w", "*;", 1, 0)])
    few, many = (starts_by_task(seen, knowledge)["task 12"] for seen in (one, each))
    assert statistics.median(few) == pytest.approx(statistics.median(many), rel=0.05)


def test_tasks_that_need_many_units_are_estimated_apart() -> None:
    """Two of four units get free at once, but all four only when the long run has ended."""
    limits = {"outer": SLOTS | {"limit": "4", "used": "2"}, "inner": SLOTS}
    queue = [waits(count, needs=f"outer={units}") for count, units in enumerate((4, 1, 4, 1), 1)]
    found = forecast(
        picture(queue, [runs("long", "outer=2", started=NOW - 1_000)], limits=limits),
        learnt(*[100_000] * 300),
    )
    small, large = found["1n@outer"], found["1n@outer#4"]
    assert small[-2] < large[-2]
    assert large[-2] > 90_000
    newcomers = [
        Newcomer(NOW, 1, 10**6, 10**6, 4, 4, 0, [Need("outer", units, 0, 4, 4)], "1") for units in (1, 3)
    ]
    one, three = (estimate_of(newcomer, found) for newcomer in newcomers)
    assert one and three and one.p50 < 0.9 * three.p50


def test_a_newcomer_behind_a_busy_account_is_not_promoted_before_it() -> None:
    mine = {"priority": 1, "fair": "busy"}
    queue = [replace(waits(count), facts=mine) for count in range(1, 22)]
    found = forecast(picture(queue, policy=NEVER | {"medium_to_high": 60_000}), learnt(*[30_000] * 300))
    assert found["1n:1"][-2] > 0.8 * 21 / 3 * 30_000


def test_how_long_tasks_hold_a_limit_is_known_before_it_is_full() -> None:
    knowledge = learnt(*[1_000] * 50)
    ends = {"ran": 60_000, "type": "draw", "needs": "inner=1"}
    comes = {"type": "draw", "priority": 1, "needs": "inner=1"}
    knowledge.learn([("complete", NOW - 1_000, ends)] * 50 + [("submit", NOW - 500, comes)] * 5, "2-2")
    found = forecast(picture(), knowledge)
    assert found["soon@inner"][0] == pytest.approx(60_000, rel=0.1)
    full = Newcomer(NOW + 100, 1, 0, 1, 3, 3, 1, [Need("inner", 1, 0, 3, 1)], "1")
    given = estimate_of(full, found)
    assert given and given.p50 == pytest.approx(3.7 * 60_000, rel=0.1)
