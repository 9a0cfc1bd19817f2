"""Estimates of the tasks of a trace: from the past alone, and about as true as they say."""

from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.estimates import foresight
from fairlead.estimates.forecast import forecast
from fairlead.estimates.foresight import replay_with_estimates
from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.picture import Picture
from fairlead.estimates.staleness import EVERY_SECONDS
from fairlead.settings import Slots
from fairlead.simulate.replays import NEVER, Replay, measure, replay
from fairlead.simulate.traces import Row
from tests.simulate.traces import scenario_of, stationary


def played(rows: Sequence[Row], slots: int = 3) -> Replay:
    return replay_with_estimates(scenario_of(rows, slots), 0, lambda _: None)


def estimates(rows: Sequence[Row], count: int) -> list[tuple[int, int]]:
    given = played(rows).estimates
    assert given
    return list(zip(given.p50, given.p90, strict=True))[:count]


@pytest.mark.long
def test_estimates_do_not_depend_on_what_comes_later() -> None:
    rows, others = stationary(90, seed=1), stationary(90, seed=2)
    last = float(rows[44].arrival)
    later = [row._replace(arrival=f"{last + float(row.arrival):.3f}", duration="70") for row in others[:45]]
    first = estimates(rows, 45)
    assert any(p90 > EVERY_SECONDS * 1000 for _, p90 in first), "some of them wait"
    assert estimates([*rows[:45], *later], 45) == first


def test_an_estimate_does_not_depend_on_how_long_the_runs_under_way_still_take() -> None:
    rows = stationary(60, seed=3)
    at = float(rows[-1].arrival)
    whole = replay(scenario_of(rows))
    runs = [n for n in range(60) if whole.starts[n] / 1000 < at < whole.ends[n] / 1000]
    assert runs
    longer = [row._replace(duration="5000") if n in runs else row for n, row in enumerate(rows)]
    assert estimates(longer, 60) == estimates(rows, 60)


@pytest.mark.long
def test_most_tasks_of_a_stationary_trace_start_within_their_p90(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "MOST_FORECASTS", 250)
    done = played(stationary(600, seed=4))
    fits = measure(done).estimates
    waits = [start - at for start, at in zip(done.starts, done.scenario.trace.arrivals, strict=True)]
    typical = sorted(wait for wait in waits if wait)[sum(map(bool, waits)) // 2] / 1000
    assert fits and fits.coverage_p90 and fits.median_error_seconds
    assert 0.8 < fits.coverage_p90 < 0.98
    assert 0 < fits.median_error_seconds < typical, "better than to say that nobody waits"


def test_a_task_that_finds_a_free_slot_and_room_starts_at_once() -> None:
    rows = [Row("0", "9", limits="gpu=1"), Row("1", "9", limits="gpu=1"), Row("1", "9", limits="gpu=1")]
    given = played(rows).estimates
    assert given
    assert list(given.p50)[:2] == [0, 0]
    assert given.p50[2] > 0, "the task of the same instant takes the last unit"


def test_the_estimates_of_tasks_that_start_at_once_are_not_measured() -> None:
    fits = measure(played([Row("0", "9"), Row("20", "9")])).estimates
    assert fits and (fits.coverage_p90, fits.median_error_seconds) == (None, None)


def test_nothing_is_said_of_a_task_that_can_never_start() -> None:
    rows = [Row("0", "9", limits="closed=1"), Row("5", "9", limits="closed=1"), Row("5", "9")]
    closed = scenario_of(rows, limits={"closed": Slots(limit=0)})
    given = replay_with_estimates(closed, 0, lambda _: None).estimates
    assert given and list(given.p90)[1:] == [NEVER, 50]


def test_forecasts_are_bounded_and_spread_over_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def recorded(picture: Picture, knowledge: Knowledge) -> dict[str, Any]:
        made.append(picture.at)
        return forecast(picture, knowledge)

    monkeypatch.setattr(foresight, "MOST_FORECASTS", 10)
    monkeypatch.setattr(foresight, "forecast", recorded)
    done = played([Row(str(3 * number), "60") for number in range(100)])
    assert done.estimates and NEVER not in done.estimates.p90, "the others read an earlier one"
    assert len(made) == 10
    assert len([at for at in made if at < 150_000]) == 5
