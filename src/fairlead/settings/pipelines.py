"""What may be written of pipelines: names of steps, and stages of them."""

import re
from collections.abc import Sequence
from typing import Any

from fairlead.checks import MOST_STEPS

#: Stages run one after the other; the steps of one stage run beside each other.
Stages = tuple[tuple[str, ...], ...]

MOST_NAME = 100  # characters: a task type and a key of the job's context are made of it
NAME = re.compile(rf"[A-Za-z0-9_.:-]{{1,{MOST_NAME}}}")
SERVICE = "service:"  # begins the task type, and the limit, of a service
A_STEP = 'a step is a name, or { parallel = ["a", "b"] } for steps beside each other'


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a service, a pipeline or a step, if anything."""
    if not NAME.fullmatch(name):
        return f"use 1 to {MOST_NAME} of A-Z a-z 0-9 _ . : -"
    if name.startswith(SERVICE):
        return f"leave out {SERVICE!r}: a step names the service itself"
    return None


def read_stages(written: object) -> Stages:
    """A list of steps as it was written; a ValueError says what is wrong with it."""
    if not isinstance(written, Sequence) or isinstance(written, str):
        raise ValueError(f'expected a list of steps, as in ["first", "second"], not {written!r}')
    if not written:
        raise ValueError("has no steps: name at least one")
    _check_count(written)  # before each is looked at: there may be any number
    stages = tuple(_read_stage(entry, number) for number, entry in enumerate(written, 1))
    _check_count([name for stage in stages for name in stage])
    return stages


def _check_count(steps: Sequence[object]) -> None:
    if len(steps) > MOST_STEPS:
        raise ValueError(f"has {len(steps)} steps, at most {MOST_STEPS} are accepted")


def _read_stage(entry: Any, number: int) -> tuple[str, ...]:
    if isinstance(entry, dict):
        if entry.keys() != {"parallel"} or not isinstance(entry["parallel"], list | tuple):
            raise ValueError(f"entry {number}: {A_STEP}")
        entry = entry["parallel"]
    names = tuple(entry) if isinstance(entry, list | tuple) else (entry,)
    _check_count(names)
    if not names:
        raise ValueError(f"entry {number}: parallel has no steps: name at least one")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"entry {number}: {A_STEP}, not {name!r}")
        if problem := name_problem(name):
            raise ValueError(f"entry {number}: {name!r} is no name of a step: {problem}")
    return names
