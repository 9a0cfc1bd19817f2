"""Forecasts that a test saves by hand, in the form of store/lua/lib/curves.lua."""

from typing import Any

from fairlead.estimates.curve import GONE_AT
from fairlead.store.store import Store
from tests.store.namespace import raw

UNCORRECTED = [1000, 1000]
FOR_EVER = 10**12  # a tag behind all others


async def forecast(store: Store, at: int, curves: dict[str, list[Any]], task_type: str = "echo") -> None:
    """Saves curves by place, by place and limit, or for lanes that are not known: `1n`, `1n@gpu`, `1n:*`."""
    await stop_upkeep(store)
    audience = await raw(store).hget(store.connection.keys.key("routes"), f"{task_type};")
    fields = {
        f"{name}:{audience.decode()}" if len(name) == 2 else name: curve for name, curve in curves.items()
    }
    head = {"at": at, "run": 0, "lengths": [], "corrections": [[UNCORRECTED]] * 3}
    assert await store.estimates.save_forecast("me", {"head": head, **fields}, 60_000)


async def stop_upkeep(store: Store) -> None:
    """Of a gateway beside it, for a minute: forecasts stay, and so do routes without waiting tasks."""
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)


NONE_GONE = [0] * len(GONE_AT)


def flat(p50: int, p90: int, *, each: int = 0) -> list[int]:
    """All tasks start then, and later by this time for each task that is ahead."""
    return [0, each, 2 * each, 0, *NONE_GONE, 0, 0, 0, p50, p90, FOR_EVER, 0, 0, p50, p90]
