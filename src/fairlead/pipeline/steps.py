"""The input of a step from its job, and which parts a Python function receives."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.model.task import Task

KEY = re.compile(r"step_([0-9]+)_")


@dataclass(frozen=True, slots=True)
class StepInput:
    """The input of the job, and the results of its earlier steps: `ctx.job`."""

    job_id: str
    step: int
    params: Mapping[str, Any]
    context: Mapping[str, Any]  #: {"step_0_outline": {"status": "SUCCESS", "data": ..., "metrics": {...}}}


def input_of(task: Task) -> StepInput | None:
    """None for a task that is no step of a job."""
    if task.job_id is None or task.step is None:
        return None
    given = task.parameters
    return StepInput(task.job_id, task.step, given.get("params") or {}, given.get("context") or {})


def step_parameters(job: StepInput, names: Collection[str] | None) -> dict[str, Any]:
    """By name: the input of the job, then the results of earlier steps; the later one wins.

    Only those that the function takes (None: it takes any): the others are for other steps.
    """
    given = dict(job.params)
    for data in _answers(job.context):
        given |= data
    return given if names is None else {name: given[name] for name in given if name in names}


def _answers(context: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those that are objects, the earliest first: the order of keys in JSON says nothing."""
    entries = []
    for key, entry in context.items():
        if (numbered := KEY.match(key)) and isinstance(entry, Mapping):
            entries.append((int(numbered[1]), entry.get("data")))
    for _, data in sorted(entries, key=lambda entry: entry[0]):
        if isinstance(data, Mapping):
            yield data
