"""The input of a step from its job, and which parts a Python function receives."""

import re
from collections.abc import Collection, Mapping
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
    results = [(int(key[1]), result) for name, result in job.context.items() if (key := KEY.match(name))]
    # the earliest first: the order of keys in JSON says nothing
    for _, result in sorted(results, key=lambda numbered: numbered[0]):
        if isinstance(result, Mapping) and isinstance(data := result.get("data"), Mapping):
            given |= data
    return given if names is None else {name: given[name] for name in given if name in names}
