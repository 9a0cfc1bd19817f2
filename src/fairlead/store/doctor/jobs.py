"""Checks of jobs: a job is open exactly while one of its steps waits or runs."""

from collections import Counter
from collections.abc import Iterator

from fairlead.model.job import ENDED, JobStatus
from fairlead.model.states import TERMINAL
from fairlead.store.doctor.breach import Breach
from fairlead.store.doctor.snapshot import Snapshot, number


def jobs_go_on(s: Snapshot) -> Iterator[Breach]:
    """J1: the steps of a job that wait or run are as many as it counts; none when it has ended."""
    if s.torn:  # a step may have ended after its job was read
        return
    live: Counter[str] = Counter()
    for task, record in s.tasks.items():
        if "step" not in record or record.get("state") in TERMINAL:
            continue
        live[record.get("job_id", "")] += 1
        if record.get("job_id") not in s.jobs:
            yield Breach("J1", f"{s.describe(task)}, but its job {record.get('job_id')} is not there", task)
    going_on = sum(record.get("status") not in ENDED for record in s.jobs.values())
    if number(s.meta, "jobs_open") != going_on:
        counted_open = s.meta.get("jobs_open", 0)
        yield Breach("J1", f"{going_on} jobs have not ended, but meta counts {counted_open}", "jobs_open")
    for job, record in s.jobs.items():
        status, counted = record.get("status"), number(record, "open")
        if live[job] != counted:
            yield Breach("J1", f"job {job} is {status} and counts {counted} steps, but has {live[job]}", job)
        if (status in ENDED) == (counted > 0):
            yield Breach("J1", f"job {job} is {status}, but {counted} of its steps wait or run", job)
        ttl = s.ttls["job", job]
        if (status in ENDED) != (ttl != -1):
            when = "never runs out" if ttl == -1 else f"runs out in {ttl} ms"
            yield Breach("J1", f"job {job} is {status}, but its record {when}", job)


def results_are_kept(s: Snapshot) -> Iterator[Breach]:
    """J2: a completed job has the result of every step, a job of a later stage those of all before."""
    for job, record in s.jobs.items():
        for step in range(number(record, "step")):
            if f"result:{step}" not in record:
                yield Breach("J2", f"job {job} is past step {step}, but has no result of it", job)
        if record.get("status") == JobStatus.COMPLETED and number(record, "step") != number(record, "total"):
            at, total = record.get("step"), record.get("total")
            yield Breach("J2", f"job {job} is COMPLETED, but at step {at} of {total}", job)
