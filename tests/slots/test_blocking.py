"""The blocking front of the slots."""

import threading
from pathlib import Path

from fairlead.sync import SlotStore


def test_threads_share_the_slots(tmp_path: Path) -> None:
    most, holders, lock = 0, 0, threading.Lock()
    slots = SlotStore(f"file://{tmp_path}")

    def hold() -> None:
        nonlocal most, holders
        with slots.acquire("gpu", 2, wait=30):
            with lock:
                holders += 1
                most = max(most, holders)
            threading.Event().wait(0.01)
            with lock:
                holders -= 1

    with slots:
        threads = [threading.Thread(target=hold) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (holders, 1 <= most <= 2) == (0, True)
        slot = slots.try_acquire("gpu", 2, "script", 5)
        assert slot
        assert slots.extend(slot, 60).expires_at > slot.expires_at
        assert slots.status("gpu").active == 1
        slots.release(slot)
        assert (slots.groups(), slots.cleanup_expired("gpu")) == (["gpu"], 0)
