"""A pipeline: named stages of steps, which become the plan of a job once each step has a task type."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from fairlead.checks import nearest
from fairlead.errors import InvalidInput, UnknownPipeline
from fairlead.model.job import NewJob, NewStep, SubmittedJob
from fairlead.settings.pipelines import SERVICE, Stages, name_problem, read_stages
from fairlead.store.jobs import Jobs, Pipelines

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


def stages_of(name: str, steps: Sequence[Any]) -> Stages:
    """From names, decorated functions, and lists (or `Parallel`) of those that run beside each other."""
    if wrong := name_problem(name) if isinstance(name, str) else "is no name":
        raise InvalidInput("pipeline", f"{name!r}: {wrong}")
    try:
        return read_stages(_named(steps))
    except ValueError as problem:
        raise InvalidInput(f"pipelines.{name}", str(problem)) from None


def _named(steps: Any) -> Any:
    """Decorated functions by the names of their types, at any depth; `read_stages` judges the rest."""
    if isinstance(steps, list | tuple):
        return [_named(step) for step in steps]
    return steps.task_type if isinstance(steps, OfType) else steps


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
    try:
        return plan(name, stages, types)
    except InvalidInput:  # once more with all types, so that the error can suggest what was meant
        return plan(name, stages, await pipelines.task_types())


def plan(pipeline: str, stages: Stages, types: Collection[str]) -> tuple[tuple[NewStep, ...], ...]:
    """The stages of a job; InvalidInput when a step is neither a service nor a task type, or both."""
    return tuple(
        tuple(NewStep(name, _task_type(pipeline, name, types)) for name in names) for names in stages
    )


def _task_type(pipeline: str, name: str, types: Collection[str]) -> str:
    known = [one for one in (SERVICE + name, name) if one in types]
    if len(known) == 1:
        return known[0]
    problem = "is a service and a task type as well: rename one of them"
    if not known:
        problem = f"is neither a service nor a task type; {_hint(name, types)}"
    raise InvalidInput(f"pipelines.{pipeline}", f"step {name!r} {problem}")


def _hint(name: str, types: Collection[str]) -> str:
    known = sorted(one.removeprefix(SERVICE) for one in types)
    if near := nearest(name, known):
        return f"did you mean {near!r}?"
    if not known:
        return "there are none: add [services] to the settings, or decorate a function with @fl.task"
    shown = ", ".join(known[:MOST_NAMED])
    return f"known are {shown}" + (", ..." if len(known) > MOST_NAMED else "")


def _some(names: list[str]) -> str:
    if not names:
        return "none: add [pipelines], or call fl.pipeline"
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
