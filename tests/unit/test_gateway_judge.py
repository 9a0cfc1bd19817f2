"""What estimates are compared with in the replays of `benchmarks/`."""

from benchmarks.gateway_judge import Past

RUNS = [(10_000, 4_000, 1), (20_000, 8_000, 2)]  # end, how long it took, units


def test_a_naive_guess_is_made_from_the_runs_that_have_ended() -> None:
    assert Past(RUNS).guess(15_000, ahead=6, slots=3) == 8.0
    assert Past(RUNS).guess(20_000, ahead=6, slots=3) == 20.0, "one took 4 s, and one two units for 8 s"


def test_a_naive_guess_does_not_change_with_what_comes_later() -> None:
    later = [*RUNS, (15_001, 900_000, 1)]
    assert Past(later).guess(15_000, ahead=6, slots=3) == Past(RUNS).guess(15_000, ahead=6, slots=3)


def test_nobody_can_guess_before_a_run_has_ended() -> None:
    assert Past(RUNS).guess(9_999, ahead=1, slots=3) is None
