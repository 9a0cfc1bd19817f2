"""A periodic task as the store knows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CronStatus:
    """Times are ms. The schedule is None until a process that ticks the cron has declared it."""

    name: str
    schedule: str | None  # minute, hour, day of month, month, day of week
    timezone: str | None
    last_tick: int  # or when it was first seen
    next_tick: int | None  # None: without a schedule, or in a time zone that is not known here
