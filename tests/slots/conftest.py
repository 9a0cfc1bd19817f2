"""Slots in a folder, in memory and on a real S3 server."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.clock import now_ms
from fairlead.slots import SlotStore


class Later:
    """This machine's time and what is added to it."""

    ms = 0

    def __call__(self) -> int:
        return now_ms() + self.ms


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        found: str = request.getfixturevalue("s3").new_url()
        return found
    return f"file://{tmp_path}/slots"


@pytest.fixture
def new_store(url: str, later: Later) -> Callable[[], SlotStore]:
    """Each as if in a process of its own."""
    return lambda: SlotStore(url, max_skew_seconds=5, clock=later)


@pytest.fixture
def slots(new_store: Callable[[], SlotStore]) -> SlotStore:
    return new_store()
