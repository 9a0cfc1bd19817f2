"""From the name of a pipeline to a job: what its steps are is looked up where all processes declare it."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Protocol

from fairlead.errors import InvalidInput, UnknownPipeline
from fairlead.model.job import NewJob, NewStep, SubmittedJob
from fairlead.pipeline.pipelines import Pipeline
from fairlead.settings.pipelines import SERVICE
from fairlead.store.pipelines import Pipelines

MOST_NAMED = 10


class SubmitsJobs(Protocol):
    """The store's jobs, as far as submitting needs them."""

    pipelines: Pipelines

    async def submit(self, job: NewJob) -> SubmittedJob: ...


async def submit_job(jobs: SubmitsJobs, job: NewJob) -> SubmittedJob:
    """Its stages are those of its pipeline."""
    return await jobs.submit(replace(job, stages=await planned(jobs.pipelines, job.feature_name)))


async def planned(pipelines: Pipelines, name: str) -> tuple[tuple[NewStep, ...], ...]:
    """The stages of a job of this pipeline; UnknownPipeline names some of those there are."""
    stages = await pipelines.get(name)
    if stages is None:
        raise UnknownPipeline(f"There is no pipeline {name!r}; there are {_some(await pipelines.names())}.")
    steps = {step for stage in stages for step in stage}
    types = await pipelines.task_types_among([*steps, *(SERVICE + step for step in steps)])
    pipeline = Pipeline(name, stages)
    try:
        return pipeline.plan(_services(types), types)
    except InvalidInput:  # once more with all there are, so that it can say what may be meant
        every = await pipelines.task_types()
        return pipeline.plan(_services(every), every)


def _services(types: Iterable[str]) -> Collection[str]:
    return {name.removeprefix(SERVICE) for name in types if name.startswith(SERVICE)}


def _some(names: list[str]) -> str:
    if not names:
        return "none: add [pipelines], or call fl.pipeline"
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
