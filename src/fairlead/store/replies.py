"""The words that acts answer in, as values and errors."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from fairlead import errors
from fairlead.model.estimate import Estimate, EstimateQuality
from fairlead.model.explanation import Blocker, Chosen, Explanation, Holder
from fairlead.model.job import JobStatus
from fairlead.model.priority import Priority
from fairlead.model.reports import Claimed, Handed
from fairlead.model.states import State
from fairlead.model.stats import Depth, Stats
from fairlead.model.task import Content, Submitted, Task
from fairlead.model.tenants import cut_name, plain_name
from fairlead.model.unserved import warnings_of
from fairlead.model.worker import WorkerStats
from fairlead.store.connection import Answer, unpack_handed

#: The words by which an act refuses, each with the error it becomes.
REFUSALS: dict[str, type[errors.FairleadError]] = {
    "uninitialised": errors.NamespaceNotOpen,
    "unknown_task": errors.UnknownTask,
    "unknown_worker": errors.UnknownWorker,
    "unknown_limit": errors.UnknownLimit,
    "key_unknown": errors.UnknownKey,
    "key_ended": errors.KeyEnded,
    "fenced": errors.Fenced,
    "not_replayable": errors.NotReplayable,
    "unknown_job": errors.UnknownJob,
    "not_purgeable": errors.NotPurgeable,
    "limit_full": errors.LimitFull,
    "no_capacity": errors.NoCapacity,
    "full": errors.FramesFull,
    "taken": errors.SessionTaken,
    "not_interactive": errors.NotInteractive,
    "conflict": errors.IdempotencyConflict,
}

#: Why a limit cannot be deleted, and what to do first.
IN_USE = {
    "file": "the settings of a server declare it; remove it there and restart the server first",
    "type": "task type {of} needs it; declare the type without it first, or wait: a type that no process "
    "declares is forgotten after a day",
    "waiting": "tasks or acquires wait for it ({of}); let them run or cancel them first",
    "running": "tasks or leases that need it have not ended; wait for them, or cancel the tasks first",
}


def expect_ok(answer: Answer, *accepted: str) -> Answer:
    """Raises the error of a refusal. `accepted`: words besides `ok` that are not one."""
    if problem := refusal(answer, *accepted):
        raise problem
    return answer


def refusal(answer: Answer, *accepted: str) -> errors.FairleadError | None:
    word = answer["answer"]
    if word == "ok" or word in accepted:
        return None
    return DETAILED[word](answer) if word in DETAILED else REFUSALS[word]()


def _invalid(answer: Answer) -> errors.InvalidInput:
    return errors.InvalidInput(answer["field"], answer["message"], answer["code"])


def _too_many_limits(answer: Answer) -> errors.InvalidInput:
    message = f"the tenant has {answer['most']} limits already: change one of them instead"
    return errors.InvalidInput("name", message, "too_many_limits")


def _limit_in_use(answer: Answer) -> errors.LimitInUse:
    why = IN_USE[answer["by"]].format(of=answer.get("of"))
    return errors.LimitInUse(f"Limit {plain_name(answer['limit'])} is in use: {why}.")


def _busy(answer: Answer) -> errors.InvalidInput:
    message = f"still holds {answer['running']} tasks: report or release them first"
    return errors.InvalidInput("worker_id", message)


def _queue_full(answer: Answer) -> errors.QueueFull:
    whose = "of this user " if answer["setting"] == "max_queued_per_user" else ""
    message = f"tasks {whose}wait already: come back later, or raise admission.{answer['setting']}."
    return errors.QueueFull(f"{answer['waiting']} {message}", **_load(answer))


def _too_many_types(answer: Answer) -> errors.TooManyTypes:
    message = (
        f"Tasks of {answer['waiting']} types (each with its capabilities) wait already: use fewer types, "
        f"come back when some are done, or raise admission.{answer['setting']}."
    )
    return errors.TooManyTypes(message, **_load(answer))


def _load(answer: Answer) -> dict[str, Any]:
    retry_after = answer["room_in"] / 1000 if "room_in" in answer else None
    return {"waiting": answer["waiting"], "retry_after": retry_after}


def _wait_too_long(answer: Answer) -> errors.WaitTooLong:
    estimate, most, word = _estimate(answer), answer["most"] / 1000, Priority(answer["priority"]).word
    wait = estimate["p50_seconds"] - most
    message = (
        f"The task would wait about {estimate['p50_seconds']:.0f} s, and tasks of {word} priority may wait "
        f"{most:g} s (admission.max_wait_seconds.{word}): come back in {math.ceil(wait)} s."
    )
    return errors.WaitTooLong(message, retry_after=wait, **estimate)


def _deadline_unlikely(answer: Answer) -> errors.DeadlineUnlikely:
    estimate = _estimate(answer)
    message = (
        f"The task would start in about {estimate['p50_seconds']:.0f} s, after its deadline of "
        f"{answer['most'] / 1000:g} s: give it more time, or a better priority."
    )
    return errors.DeadlineUnlikely(message, **estimate)


def _estimate(answer: Answer) -> dict[str, Any]:
    p50, p90, at = answer["estimate"]
    return {"p50_seconds": p50 / 1000, "p90_seconds": p90 / 1000, "at": at}


def _evicting(answer: Answer) -> errors.StoreUnsafe:
    return errors.StoreUnsafe(
        f"The store's maxmemory-policy is {answer['policy']}, so it may throw tasks away and no new work "
        "is accepted: run `CONFIG SET maxmemory-policy noeviction` there."
    )


def _rate_limited(answer: Answer) -> errors.RateLimited:
    return errors.RateLimited(retry_after=answer["wait"] / 1000)


def _already_finished(answer: Answer) -> errors.AlreadyFinished:
    if "status" not in answer:
        return errors.AlreadyFinished()
    return errors.AlreadyFinished(f"The job is {answer['status']} already: nothing was changed.")


def _not_resumable(answer: Answer) -> errors.NotResumable:
    if answer["status"] != JobStatus.FAILED:
        return errors.NotResumable(f"The job is {answer['status']}: only a failed one can be resumed.")
    problem = msgspec.json.decode(answer["error"])
    why = f"step {problem['step']} failed for good ({problem['code']}: {problem['message']})"
    how = f"`fairlead job resume --force {answer['id']}` runs it again; over HTTP that needs the scope admin"
    return errors.NotResumable(f"The job cannot be resumed as it is: {why}. When the cause is fixed, {how}.")


def _step_of_job(answer: Answer) -> errors.StepOfJob:
    """Its job has not failed, so it cannot be replayed."""
    match answer.get("status"):
        case None:
            what = "whose record is gone: submit a new job"
        case "PENDING" | "RUNNING" as status:
            what = f"which is {status}: replay it when the job has failed"
        case status:
            what = f"which is {status}: submit a new job"
    return errors.StepOfJob(f"This task is a step of job {answer['job']}, {what}.")


def _kept_by_job(answer: Answer) -> errors.StepOfJob:
    return errors.StepOfJob(
        f"This task is a step of job {answer['job']}, which can be resumed as long as it is kept: "
        "it is deleted when the job is."
    )


#: Refusals whose message has facts of the answer.
DETAILED: dict[str, Callable[[Answer], errors.FairleadError]] = {
    "invalid": _invalid,
    "too_many_limits": _too_many_limits,
    "limit_in_use": _limit_in_use,
    "busy": _busy,
    "queue_full": _queue_full,
    "too_many_types": _too_many_types,
    "wait_too_long": _wait_too_long,
    "deadline_unlikely": _deadline_unlikely,
    "evicting": _evicting,
    "rate_limited": _rate_limited,
    "already_finished": _already_finished,
    "not_resumable": _not_resumable,
    "step_of_job": _step_of_job,
    "kept_by_job": _kept_by_job,
}


def state_or_error(row: Answer) -> State | errors.FairleadError:
    """A repeated report is answered as the first one was."""
    return refusal(row, "repeated") or State(row["state"])


def submitted_parts(
    sizes: Iterable[int], answers: Sequence[Answer | errors.FairleadError]
) -> list[Submitted | errors.FairleadError]:
    """Of each task of each part. Raises the error of the first if all were refused."""
    refused = [answer for answer in answers if isinstance(answer, errors.FairleadError)]
    if refused and len(refused) == len(answers):
        raise refused[0]
    answered: list[Submitted | errors.FairleadError] = []
    for size, answer in zip(sizes, answers, strict=True):
        if isinstance(answer, errors.FairleadError):
            answered += [answer] * size
        else:
            answered += map(submitted_or_error, expect_ok(answer)["rows"])
    return answered


def submitted_or_error(row: Answer) -> Submitted | errors.FairleadError:
    return refusal(row, "exists") or submitted(row)


def submitted(row: Answer) -> Submitted:
    """Raises the error of a refusal."""
    repeated = expect_ok(row, "exists")["answer"] == "exists"
    priority, effective = (Priority(row[name]) if name in row else None for name in ("priority", "effective"))
    return Submitted(
        row["id"],
        State(row["state"]),
        repeated,
        row.get("position"),
        tuple(map(plain_name, row.get("blocked_by", ()))),
        priority,
        effective,
        warnings_of([row["unserved"]] if "unserved" in row else ()),
        Estimate.of_row(row.get("estimate")),
    )


def claimed(answer: Answer, content: Content = msgspec.json.decode) -> Claimed:
    expect_ok(answer, "draining")
    tasks = [Task.from_record(row["id"], row["fields"], content) for row in answer["tasks"]]
    if answer["answer"] == "draining":
        return Claimed(tasks, answer["now"], draining=True)
    return Claimed(tasks, answer["now"], answer.get("alarm"), again=answer["again"])


def handed_by(packed: bytes) -> Handed:
    now, (task_id, record) = unpack_handed(packed)
    return Handed(Task.from_record(task_id, record), now)


def read_stats(answer: Answer, workers: Iterable[WorkerStats]) -> Stats:
    now: int = answer["now"]
    depth: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for row in answer["places"]:
        word = Priority(int(row["place"][0])).word
        depth[word] += row["depth"]
        oldest[word] = min(oldest.get(word, now), row.get("oldest", now))
    return Stats(
        queues={p.word: Depth(depth[p.word], (now - oldest[p.word]) / 1000) for p in Priority},
        workers=list(workers),
        delayed=answer["delayed"],
        ended_last_minute=Counter(answer["ended"] or {}),  # an empty Lua table is packed as a list
        lost_events=answer["lost_events"],
        missing_records=answer["missing_records"],
        held=answer.get("held"),
        estimates=EstimateQuality(**answer.get("estimates", {})),
    )


def read_explanation(task_id: str, answer: Answer, similar_type: str | None = None) -> Explanation:
    now, estimate = answer["now"], Estimate.of_row(answer.get("estimate"))
    if answer["state"] != State.QUEUED:
        chosen = _chosen(answer["chosen"]) if "chosen" in answer else None
        run_at, state = answer.get("run_at"), State(answer["state"])
        return Explanation(task_id, state, run_at=run_at, estimate=estimate, at=now, chosen_because=chosen)
    ahead = answer["ahead"] or {}  # an empty Lua table is packed as a list
    return Explanation(
        task_id,
        State.QUEUED,
        effective_priority=Priority(int(answer["place"][0])),
        promoted=answer["place"][1] == "p",
        position=answer["position"],
        ahead={Priority(int(place)).word: count for place, count in ahead.items()},
        promotes_at=answer.get("promotes_at"),
        blocked_by=tuple(_blocker(row, now) for row in answer["blocked_by"]),
        held_for=answer.get("held_for"),
        type_paused=answer["type_paused"],
        no_capable_worker=answer["capable_workers"] == 0,
        task_type=answer["type"],
        type_unserved=not answer.get("serves_type", True),
        missing_capabilities=tuple(answer.get("missing", ())),
        similar_type=similar_type,
        reserve=answer["only_reserve_free"],
        estimate=estimate,
        at=now,
    )


def _blocker(row: Answer, now: int) -> Blocker:
    tenant, name = cut_name(row["limit"])
    free_at, holders = row.get("free_at"), tuple(map(_holder, row["holders"]))
    seconds = None if free_at is None else max(0, free_at - now) / 1000
    known = {**row, "limit": name, "tenant": tenant, "holders": holders, "next_free_seconds": seconds}
    return Blocker(**known)


def _holder(row: Answer) -> Holder:
    tenant, holder_id = (row.get("tenant"), row["id"]) if row["is_task"] else cut_name(row["id"])
    return Holder(
        units=row["units"],
        task_id=holder_id if row["is_task"] else None,
        lease_id=None if row["is_task"] else holder_id,
        worker=row.get("name") or None,
        since=row.get("since"),
        expires_at=row.get("expires"),
        expected_end=row.get("expected"),
        ends_at=row.get("ends"),
        tenant=tenant,
    )


def _chosen(row: Answer) -> Chosen:
    why = msgspec.json.decode(row["why"]) if "why" in row else {}
    return Chosen(
        worker_id=row["worker"],
        at=row["at"],
        waited_seconds=row["waited"] / 1000 if "waited" in row else None,
        effective_priority=Priority(int(row["place"][0])),
        promoted=row["place"][1] == "p",
        tag=row["tag"],
        better_waiting={Priority(int(place)).word: count for place, count in why.get("better", {}).items()},
        skipped_for=tuple(map(plain_name, why.get("lacked", ()))),
    )
