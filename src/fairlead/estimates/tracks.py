"""Which slot of a limit each run is drawn on: slots are interchangeable, but a picture must not jump."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

MOST_TRACKS = 32  # of a limit with more slots, a track is a line of runs and not one unit

Placed = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Stay:
    """Something that holds units for a time."""

    holder: str
    units: int
    start: int
    end: int
    is_running: bool


def placed(stays: Collection[Stay], slots: int, before: Placed) -> dict[str, tuple[int, ...]]:
    """The tracks of each holder: one for each unit, or just one if there are no `slots`.

    All keep the tracks that they had `before` where that is possible. Otherwise they take those that are free
    first. When more runs than there are slots, because the limit was made smaller, there are more tracks.
    """
    kept = [track for stay in stays if stay.is_running for track in before.get(stay.holder, ())]
    free_at = [0] * max([slots, *(track + 1 for track in kept)])
    found: dict[str, tuple[int, ...]] = {}
    for stay in sorted(stays, key=lambda one: (not one.is_running, one.holder not in before, one.start)):
        due, units = 0 if stay.is_running else stay.start, stay.units if slots else 1
        tracks = before.get(stay.holder, ())
        if len(tracks) != units or any(not _is_free(free_at, track, due) for track in tracks):
            tracks = _first_free(free_at, units, due, can_grow=stay.is_running or not slots)
        free_at += [0] * (max(tracks, default=0) + 1 - len(free_at))
        for track in tracks:
            free_at[track] = max(1, stay.end)
        found[stay.holder] = tracks
    return found


def _first_free(free_at: Sequence[int], units: int, due: int, *, can_grow: bool) -> tuple[int, ...]:
    order = sorted(range(len(free_at)), key=lambda track: (free_at[track], track))
    free = [track for track in order if free_at[track] <= due]
    if len(free) >= units or not can_grow:
        return tuple(sorted(order[:units]))
    return (*sorted(free), *range(len(free_at), len(free_at) + units - len(free)))


def _is_free(free_at: Sequence[int], track: int, due: int) -> bool:
    return track < len(free_at) and free_at[track] <= due
