"""Checks of jobs: a job is open exactly while one of its steps waits or runs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from fairlead.model.job import ENDED, JobStatus
from fairlead.model.states import REPLAYABLE, TERMINAL
from fairlead.store.doctor.snapshot import Breach, Snapshot, number


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


def steps_are_known(s: Snapshot) -> Iterator[Breach]:
    """J3: what a job keeps of a step is the state of its task."""
    if s.torn:  # a step may have moved after its job was read
        return
    for task, record in s.tasks.items():
        job, field = record.get("job_id", ""), f"step:{record.get('step')}"
        packed = s.jobs.get(job, {}).get(field)
        if packed is None:  # not a step, or queued by a version that kept nothing
            continue
        state = _state_of(packed)
        if state != record.get("state"):
            yield Breach("J3", f"{s.describe(task)}, but its job {job} says {state}", task)


def _state_of(packed: str) -> str:
    try:
        kept = msgspec.msgpack.decode(packed.encode(errors="surrogateescape"), type=dict[str, Any])
        return str(kept["state"])
    except (msgspec.MsgspecError, KeyError):
        return "what cannot be read"


def failed_steps_are_current(s: Snapshot) -> Iterator[Breach]:
    """J4: a job is not past a step that failed: when it was resumed, the step left the dead letters."""
    if s.torn:  # the step may have been queued again after it was read
        return
    for task, record in s.tasks.items():
        if "step" not in record or record.get("state") not in REPLAYABLE:
            continue
        job = s.jobs.get(record.get("job_id", ""), {})  # it may have expired before its step
        if number(job, "step") > number(record, "step"):
            yield Breach("J4", f"{s.describe(task)}, but its job {record['job_id']} is past that step", task)
