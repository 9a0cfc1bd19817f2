"""Checks of what has ended: it is listed by when it ended, and counted, so that the oldest can go."""

import re
from collections.abc import Iterator

from fairlead.model.job import JobStatus
from fairlead.model.states import State
from fairlead.store.doctor.snapshot import Breach, Snapshot, number

ENTRY = re.compile(r"([0-9]{1,18}):((?:task|job):.+)")  # bytes, kind and id
FINISHED = frozenset({State.COMPLETED, State.CANCELLED})
FINISHED_JOBS = frozenset({JobStatus.COMPLETED, JobStatus.CANCELLED})


def finished_are_listed(s: Snapshot) -> Iterator[Breach]:
    """R1: what was completed or cancelled is in `finished`, and nothing else that has a record."""
    ended: dict[str, int] = {}  # "task:<id>" -> when it ended
    records = [(f"task:{i}", t) for i, t in s.tasks.items()] + [(f"job:{i}", j) for i, j in s.jobs.items()]
    for name, record in records:
        over = record.get("state") in FINISHED or record.get("status") in FINISHED_JOBS
        if over and "stopping" not in record:  # its lease needs the record of a task that is being stopped
            ended[name] = number(record, "finished")
    created = {name: number(record, "created") for name, record in records}
    forgotten = s.now - number(s.meta, "finished_ttl")  # up to then entries go, though a record may be left
    listed: dict[str, float] = {}
    for entry, at in s.zset("finished").items():
        if not (parts := ENTRY.fullmatch(entry)):
            yield Breach("R1", f"finished has {entry}, which is no entry", entry)
        else:
            listed[parts[2]] = max(at, listed.get(parts[2], at))
    for name, at in listed.items():
        # an entry from before its record was made is of an earlier life: an id may be used again
        if name in created and name not in ended and at > max(forgotten, created[name]):
            yield Breach("R1", f"finished has {name}, which has not ended", f"finished {name}")
    for name, instant in ended.items():
        if listed.get(name) != instant and instant > forgotten:
            yield Breach("R1", f"{name} ended at {instant}, but finished does not say so", f"finished {name}")


def failed_jobs_are_listed(s: Snapshot) -> Iterator[Breach]:
    """R1: a failed job is in `deadjobs`, and no other that has a record."""
    listed, forgotten = s.zset("deadjobs"), s.now - number(s.meta, "dead_ttl")
    for job, record in s.jobs.items():
        failed, ended = record.get("status") == JobStatus.FAILED, number(record, "finished")
        if failed and listed.get(job) != ended and ended > forgotten:
            yield Breach("R1", f"job {job} failed at {ended}, but deadjobs does not say so", f"dead {job}")
        elif not failed and job in listed and listed[job] > forgotten:
            yield Breach("R1", f"deadjobs has {job}, which has not failed", f"dead {job}")


def finished_are_counted(s: Snapshot) -> Iterator[Breach]:
    """R1: the number and the size of what is in `finished`."""
    sizes = [int(parts[1]) for entry in s.zset("finished") if (parts := ENTRY.fullmatch(entry))]
    for name, right in (("finished_count", len(sizes)), ("finished_bytes", sum(sizes))):
        if (found := number(s.meta, name)) != right:
            yield Breach("R1", f"{name} is {found}, but {right} is right", name)
