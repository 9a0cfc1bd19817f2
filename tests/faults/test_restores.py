"""The short form of `python -m chaos restores`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.restores import play, site


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("history_url", "durability"), [("sqlite", "always"), ("postgresql", "ledger")], indirect=["history_url"]
)
async def test_everything_is_lost_and_comes_back(
    tmp_path: Path, history_url: str, durability: str, record_property: Callable[[str, object], None]
) -> None:
    async with site(tmp_path, durability, history_url) as place:
        figures = await play(place, 7, submits=120, losses=1)
        record_property("figures", figures)
        print(figures)
        if durability == "ledger":
            assert figures["missing"] == 0
