"""Scripts have no rollback. Here the k-th call of every act fails, for every k: nothing is left half done.

While an act decides, a fault leaves no trace. While it writes, it leaves the rest of its writes behind (the
doctor says so), and the next act of anybody makes them first.
"""

import contextlib
from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.acts import ACTS, busy
from tests.conftest import Clock
from tests.faults.breaking import Breaking, plant
from tests.saved import Saved
from tests.servers import KINDS

OTHERS = [pytest.param(kind, marks=pytest.mark.other_server) for kind in KINDS[1:]]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ACTS)
async def test_an_act_that_breaks_at_any_call_leaves_nothing_half_done(
    name: str, store: Store, clock: Clock
) -> None:
    await break_at_every_call(name, store, clock)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["submit", "claim", "complete", "forget"])
@pytest.mark.parametrize("server", OTHERS, indirect=True)
async def test_an_error_leaves_nothing_half_done_on_another_server(
    name: str, store: Store, clock: Clock
) -> None:
    await break_at_every_call(name, store, clock)


async def break_at_every_call(name: str, store: Store, clock: Clock) -> None:
    began = await busy(store, clock)
    now, saved = clock.now, await Saved.of(store.connection)
    broken = 0
    for k in range(1, 1000):
        clock.now, healthy = now, await saved.put_back()
        scene = replace(began, store=Store(healthy, store.settings, clock))
        plant(scene.store, Breaking(healthy, k))
        try:
            await ACTS[name](scene)
            finished = True
        except errors.StoreFault as fault:
            assert "planted fault" in str(fault)
            finished = False
            broken += 1
        plant(scene.store, healthy)
        left = await examine(healthy, now_ms=clock.now, twice=False)
        assert {breach.invariant for breach in left} <= {"W1"}, (k, left)
        await scene.store.stats()  # any act finishes what was left
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        with contextlib.suppress(errors.NotReplayable, errors.UnknownTask):  # queued again, or gone, already
            await ACTS[name](scene)  # the caller repeats it, as after a lost reply
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        if finished:
            break
    assert broken >= 3, "the act makes fewer calls than this test supposes"
