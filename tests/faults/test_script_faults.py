"""Scripts have no rollback. Here the k-th call of every act fails, for every k: nothing is left half done.

While an act decides, a fault leaves no trace. While it writes, it leaves the rest of its writes behind (the
doctor says so), and the next act of anybody makes them first.
"""

import contextlib
from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.acts import ACTS, busy
from tests.conftest import Clock
from tests.faults.breaking import failing_at, plant


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ACTS)
async def test_an_act_that_breaks_at_any_call_leaves_nothing_half_done(
    name: str, open_store: Callable[..., Store]
) -> None:
    broken = 0
    for k in range(1, 1000):
        clock = Clock()
        store = open_store(clock=clock)
        await store.open()
        scene = await busy(store, clock)
        healthy = store.connection
        plant(store, healthy.with_call(failing_at(k)))
        try:
            await ACTS[name](scene)
            finished = True
        except errors.StoreFault as fault:
            assert "planted fault" in str(fault)
            finished = False
            broken += 1
        plant(store, healthy)
        left = await examine(healthy, now_ms=clock.now, twice=False)
        assert {breach.invariant for breach in left} <= {"W1"}, (k, left)
        await store.stats()  # any act: it finishes what was left
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        with contextlib.suppress(errors.NotReplayable, errors.UnknownTask):  # queued again, or gone, already
            await ACTS[name](scene)  # the caller repeats it, as after a lost reply
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        if finished:
            break
    assert broken >= 3, "the act makes fewer calls than this test supposes"
