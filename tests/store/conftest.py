"""The store's tests run on every kind of server it supports."""

from collections.abc import Callable

import pytest

from tests.servers import KINDS, Server


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, start_server: Callable[[str], Server]) -> Server:
    return start_server(request.param)
