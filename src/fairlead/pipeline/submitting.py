"""From the name of a pipeline to a job: what its steps are is looked up where all processes declare it."""

from dataclasses import replace
from typing import Any, Protocol

from fairlead.errors import UnknownPipeline
from fairlead.model.job import NewJob, SubmittedJob
from fairlead.pipeline.pipelines import Pipeline
from fairlead.settings.pipelines import SERVICE
from fairlead.store.jobs import Known


class SubmitsJobs(Protocol):
    """The store's jobs, as far as submitting needs them."""

    async def known(self) -> Known: ...
    async def submit(self, job: NewJob) -> SubmittedJob: ...


async def submit_job(jobs: SubmitsJobs, job: NewJob) -> SubmittedJob:
    """Its stages are those of its pipeline."""
    return await jobs.submit(replace(job, stages=planned(await jobs.known(), job.feature_name)))


def planned(known: Known, feature_name: str) -> Any:
    """The stages of a job of this pipeline; UnknownPipeline names those there are."""
    stages = known.pipelines.get(feature_name)
    if stages is None:
        there_are = ", ".join(sorted(known.pipelines)) or "none: add [pipelines], or call fl.pipeline"
        raise UnknownPipeline(f"There is no pipeline {feature_name!r}; there are {there_are}.")
    services = {name.removeprefix(SERVICE) for name in known.task_types if name.startswith(SERVICE)}
    return Pipeline(feature_name, stages).plan(services, known.task_types)
