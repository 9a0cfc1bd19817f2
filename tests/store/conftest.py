"""The store's tests run on every kind of server it supports."""

from collections.abc import Callable

import pytest

from fairlead.store import workers
from tests.connections import PATIENCE
from tests.servers import KINDS, Server


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, start_server: Callable[[str], Server]) -> Server:
    return start_server(request.param)


@pytest.fixture(autouse=True)
def the_end_of_a_wait_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ANSWER_WITHIN", PATIENCE)
