"""Settings of the server: rates of keys, with errors that name the problem."""

from pathlib import Path

import pytest

from fairlead.errors import InvalidSettings
from fairlead.settings import Rate
from fairlead.settings.loading import load_settings


def rate_of(text: str) -> Rate | None:
    return load_settings(None, {"FAIRLEAD_SERVER__SUBMIT_RATE": text}).server.submit_rate


def test_there_is_no_rate_unless_one_is_set() -> None:
    assert load_settings(None, {}).server.submit_rate is None


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/s", Rate(count=100, period_seconds=1, burst=100)),
        ("60/min", Rate(count=60, period_seconds=60, burst=60)),
        ("{ rate = '10/s', burst = 3 }", Rate(count=10, period_seconds=1, burst=3)),
    ],
)
def test_a_rate_is_a_text_or_a_table(text: str, rate: Rate) -> None:
    assert rate_of(text) == rate


def test_a_file_may_say_it_too(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.toml"
    file.write_text('[server]\nsubmit_rate = { rate = "5/s", burst = 9 }\n')
    assert load_settings(file, {}).server.submit_rate == Rate(count=5, period_seconds=1, burst=9)


def test_an_invalid_rate_is_named(subtests: pytest.Subtests) -> None:
    for text, says in [
        ("fast", "server.submit_rate: expected a rate such as"),
        ("100", "server.submit_rate: expected a rate such as"),
        ("0/s", "server.submit_rate: expected a rate such as"),
        ("{ burst = 3 }", "server.submit_rate: expected a rate such as"),
        ("{ rate = '1/s', burst = 0 }", "server.submit_rate.burst: expected a whole number of at least 1"),
        ("{ rate = '1/s', brust = 2 }", "did you mean server.submit_rate.burst?"),
    ]:
        with subtests.test(text=text, says=says):
            with pytest.raises(InvalidSettings) as problem:
                rate_of(text)
            assert says in str(problem.value)
            assert "FAIRLEAD_SERVER__SUBMIT_RATE" in str(problem.value)
