"""Forecasts that a test writes, in place of the estimator's: a picture that stays as it is."""

from collections.abc import Sequence
from typing import Any

from fairlead.clock import now_ms
from fairlead.estimates.expected import WORKERS
from fairlead.model.forecast import ForecastRun, LimitForecast, Outlook, Pressure, Track
from fairlead.model.priority import Priority
from fairlead.store.store import Store
from tests.api.serving import Gateway
from tests.browser.person import run_elsewhere
from tests.connections import patient_store
from tests.store.namespace import raw

RUN_MS = 20_000


def in_turn(tasks: Sequence[dict[str, Any]], *, running: int) -> tuple[ForecastRun, ...]:
    """One after the other on one slot; the first `running` of them run."""
    start = now_ms() - 5_000
    return tuple(
        ForecastRun(
            is_running=i < running,
            priority=Priority.LOW,
            task_id=task["task_id"],
            user_id=task.get("user_id"),
            job_id=task.get("job_id"),
            task_type=task["task_type"],
            start_p50=start + i * RUN_MS,
            start_p90=start + i * RUN_MS + (0 if i < running else 4_000),
            end_p50=start + (i + 1) * RUN_MS,
            end_p90=start + (i + 1) * RUN_MS + 6_000,
        )
        for i, task in enumerate(tasks)
    )


def show(gateway: Gateway, **runs: Sequence[ForecastRun]) -> None:
    """By limit, or `WORKERS`, those that hold its one slot or wait for it."""
    run_elsewhere(_save(gateway, runs))


async def _save(gateway: Gateway, runs: dict[str, Sequence[ForecastRun]]) -> None:
    async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
        await _keep_others_out(store)
        head = {"head": {"at": now_ms(), "run": 0, "lengths": [], "corrections": [[[1000, 1000]]] * 3}}
        limits = {name: _limit(name, tuple(its)) for name, its in runs.items()}
        pressures = {name: _pressure(limit) for name, limit in limits.items()}
        outlook = Outlook(limits=limits, pressures=pressures, types={})
        assert await store.estimates.save_forecast("me", head, 600_000, outlook)


async def _keep_others_out(store: Store) -> None:
    """A gateway beside it does no upkeep meanwhile, and makes no forecast."""
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=600_000)


def _limit(name: str, runs: tuple[ForecastRun, ...]) -> LimitForecast:
    waiting = [run for run in runs if not run.is_running]
    return LimitForecast(
        name=name or "workers",
        kind="workers" if name == WORKERS else "slots",
        limit=1,
        active=len(runs) - len(waiting),
        waiting=len(waiting),
        tracks=(Track(0, runs),),
        last_start_p50=max((run.start_p50 for run in waiting), default=None),
    )


def _pressure(limit: LimitForecast) -> Pressure:
    waiting, held = {"low": limit.waiting}, {"low": limit.active}
    return Pressure(at=now_ms(), waiting=waiting, held=held, last_start_p50=limit.last_start_p50)
