"""A pipeline: named stages of steps, which become the plan of a job once each step has a task type."""

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from fairlead.errors import InvalidInput, UnknownPipeline
from fairlead.model.job import NewJob, NewStep, SubmittedJob
from fairlead.settings.pipelines import SERVICE, Stages, name_problem, read_stages
from fairlead.store.jobs import Jobs
from fairlead.store.pipelines import Pipelines

MOST_NAMED = 10


@runtime_checkable
class OfType(Protocol):
    """A decorated function, for one."""

    @property
    def task_type(self) -> str: ...


Step = str | OfType


class Parallel(tuple[Step, ...]):
    """Steps beside each other: `["outline", Parallel("draw", "narrate"), "bind"]`."""

    __slots__ = ()

    def __new__(cls, *steps: Step) -> "Parallel":
        return super().__new__(cls, steps)


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    stages: Stages

    @classmethod
    def of(cls, name: str, steps: Sequence[Any]) -> "Pipeline":
        """From names, decorated functions, and lists (or `Parallel`) of those that run beside each other."""
        if wrong := name_problem(name) if isinstance(name, str) else "is no name":
            raise InvalidInput("pipeline", f"{name!r}: {wrong}")
        try:
            return cls(name, read_stages(_named(steps)))
        except ValueError as problem:
            raise InvalidInput(f"pipelines.{name}", str(problem)) from None

    def plan(self, services: Collection[str], task_types: Collection[str]) -> tuple[tuple[NewStep, ...], ...]:
        """The stages of a job; InvalidInput when a step is neither a service nor a task type, or both."""
        return tuple(
            tuple(NewStep(name, self._task_type(name, services, task_types)) for name in names)
            for names in self.stages
        )

    def _task_type(self, name: str, services: Collection[str], task_types: Collection[str]) -> str:
        field = f"pipelines.{self.name}"
        if name in services and name in task_types:
            raise InvalidInput(
                field, f"step {name!r} is a service and a task type as well: rename one of them"
            )
        if name in services:
            return SERVICE + name
        if name in task_types:
            return name
        known = [*services, *(one for one in task_types if not one.startswith(SERVICE))]
        raise InvalidInput(field, f"step {name!r} is neither a service nor a task type; {_hint(name, known)}")


def _named(steps: Any) -> Any:
    """Decorated functions by the names of their types, at any depth; `read_stages` judges the rest."""
    if isinstance(steps, list | tuple):
        return [_named(step) for step in steps]
    return steps.task_type if isinstance(steps, OfType) else steps


def _hint(name: str, known: list[str]) -> str:
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.5):
        return f"did you mean {near[0]!r}?"
    if not known:
        return "there are none: add [services] to the settings, or decorate a function with @fl.task"
    shown = ", ".join(sorted(known)[:10])
    return f"known are {shown}" + (", ..." if len(known) > 10 else "")


async def submit_job(jobs: Jobs, job: NewJob) -> SubmittedJob:
    """Submits it with the stages of its pipeline."""
    return await jobs.submit(replace(job, stages=await planned(jobs.pipelines, job.feature_name)))


async def planned(pipelines: Pipelines, name: str) -> tuple[tuple[NewStep, ...], ...]:
    """The stages of a job of this pipeline; UnknownPipeline names some that exist."""
    stages = await pipelines.get(name)
    if stages is None:
        raise UnknownPipeline(f"There is no pipeline {name!r}; there are {_some(await pipelines.names())}.")
    steps = {step for stage in stages for step in stage}
    types = await pipelines.task_types_among([*steps, *(SERVICE + step for step in steps)])
    pipeline = Pipeline(name, stages)
    try:
        return pipeline.plan(_services(types), types)
    except InvalidInput:  # once more with all types, so that the error can suggest what was meant
        every = await pipelines.task_types()
        return pipeline.plan(_services(every), every)


def _services(types: Iterable[str]) -> Collection[str]:
    return {name.removeprefix(SERVICE) for name in types if name.startswith(SERVICE)}


def _some(names: list[str]) -> str:
    if not names:
        return "none: add [pipelines], or call fl.pipeline"
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
