"""Every act runs on every kind of server."""

from collections.abc import Callable

import pytest

from fairlead.store.connection import Answer, Argument
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import names
from fairlead.store.store import Store
from tests.acts import ACTS, busy
from tests.conftest import Clock
from tests.connections import PatientConnection

#: Acts that begin or end a loss of data, or that read an older schema, have their own tests.
ELSEWHERE = {"accept", "migrate", "restore", "seal"}


@pytest.mark.every_server
async def test_every_act_leaves_a_namespace_in_which_the_doctor_finds_nothing(
    open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    evaluate = PatientConnection.run

    async def noted(self: PatientConnection, act: str, *arguments: Argument) -> Answer:
        seen.add(act)
        return await evaluate(self, act, *arguments)

    monkeypatch.setattr(PatientConnection, "run", noted)
    for name, act in ACTS.items():
        clock = Clock()
        store = open_store(clock=clock)
        await store.open()
        scene = await busy(store, clock)
        await store.explain(scene.queued)
        await store.outputs(scene.queued)
        await store.limits.all()
        await store.stats()
        await act(scene)
        assert await examine(store.connection, now_ms=clock.now, twice=False) == [], name
    assert set(names()) - seen == ELSEWHERE
