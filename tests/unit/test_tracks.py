"""Which slot of a limit each run is drawn on."""

from fairlead.estimates.tracks import Stay, placed


def runs(holder: str, end: int, units: int = 1) -> Stay:
    return Stay(holder, units, 100, end, True)


def waits(holder: str, start: int, end: int, units: int = 1) -> Stay:
    return Stay(holder, units, start, end, False)


def test_what_runs_stays_where_it_was_and_the_next_takes_the_place_that_gets_free() -> None:
    first = placed([runs("a", 200), runs("b", 300), waits("c", 200, 400)], 2, {})
    assert first == {"a": (0,), "b": (1,), "c": (0,)}
    second = placed([runs("b", 300), runs("c", 400), waits("d", 300, 500)], 2, first)
    assert second == {"b": (1,), "c": (0,), "d": (1,)}


def test_what_is_expected_moves_when_its_track_is_not_free_by_then() -> None:
    before = placed([runs("a", 200), runs("b", 300), waits("c", 200, 400)], 2, {})
    now = placed([runs("a", 350), runs("b", 300), waits("c", 300, 500)], 2, before)
    assert now == {"a": (0,), "b": (1,), "c": (1,)}


def test_several_units_take_several_tracks() -> None:
    found = placed([runs("a", 200), waits("b", 250, 400, 3), waits("c", 400, 500)], 4, {})
    assert found == {"a": (0,), "b": (1, 2, 3), "c": (0,)}


def test_a_limit_that_was_made_smaller_shows_all_that_still_runs() -> None:
    before = placed([runs("a", 200), runs("b", 300), runs("c", 400)], 3, {})
    assert placed([runs("b", 300), runs("c", 400)], 1, before) == {"b": (1,), "c": (2,)}


def test_without_slots_a_track_is_a_line_of_runs() -> None:
    found = placed([runs("a", 200, 24), waits("b", 150, 400, 8), waits("c", 210, 500, 8)], 0, {})
    assert found == {"a": (0,), "b": (1,), "c": (0,)}


def test_a_task_that_needs_more_than_there_is_does_not_break_the_picture() -> None:
    assert placed([waits("a", 150, 400, 8)], 2, {}) == {"a": (0, 1)}
    assert placed([], 2, {}) == {}
