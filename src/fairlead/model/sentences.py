"""Explanations in words: one plain sentence each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.model.unserved import unserved_sentence
from fairlead.times import clock_text, time_text

if TYPE_CHECKING:
    from fairlead.model.explanation import Blocker, Chosen, Explanation, Holder


def sentence_of(explanation: "Explanation") -> str:
    if explanation.state is State.QUEUED:
        return _of_queued(explanation)
    if explanation.state is State.DELAYED and explanation.run_at is not None:
        return f"It is delayed until {time_text(explanation.run_at)}."
    chosen = explanation.chosen_because
    return f"It is {explanation.state}" + (f"; {_chosen(chosen, explanation.at)}." if chosen else ".")


def _of_queued(it: "Explanation") -> str:
    if it.type_paused:
        return "Its task type is paused."
    if it.no_capable_worker:
        served = not it.type_unserved
        return unserved_sentence(
            it.task_type or "", it.missing_capabilities, it.similar_type, serves_type=served
        )
    ahead = (it.queue_position or 1) - 1
    parts = [_reason(it, ahead)]
    if ahead:
        parts.append("1 task is ahead" if ahead == 1 else f"{ahead} tasks are ahead")
        if it.promotes_at is not None and it.effective_priority:
            better = Priority(it.effective_priority - 1).word
            parts.append(f"it becomes {better} at {clock_text(it.promotes_at, it.at)}")
    return "; ".join(parts) + "."


def _reason(it: "Explanation", ahead: int) -> str:
    if it.blocked_by:
        kept = "units are kept for another task, which needs several limits" if it.held_for else ""
        waits = ", and for ".join(_blocker(one, it.at) for one in it.blocked_by)
        return "; ".join(filter(None, (f"It waits for {waits}", kept)))
    if it.reserve:
        return "The free slots are reserved for high priority"
    return "It waits for a free worker" if ahead else "It is next"


def _blocker(it: "Blocker", now: int) -> str:
    units = f"{_count(it.needs, 'unit')} of {it.limit}"
    until = _time(it, now)
    if it.paused or not it.of:
        return f"{units}, which is paused"
    if it.is_rate:
        return units + (f", which has room at {until}" if until else "")
    if not it.holders:
        return f"{units} ({it.used} of {it.of} used)"
    if len(it.holders) == 1:
        return f"{units}, which {_holders(it.holders)} holds" + (f" until {until}" if until else "")
    held = f"{units}, which {_holders(it.holders)} hold"
    return held + (f" and which has room at {until}" if until else "")


def _time(it: "Blocker", now: int) -> str:
    if it.free_at is None:
        return ""
    if it.by_deadline:
        return f"{clock_text(it.free_at, now)} at the latest"
    return f"about {clock_text(it.free_at, now, about=True)}"


def _holders(holders: Sequence["Holder"]) -> str:
    """The first, by name if it has one, and how many others."""
    first, others = holders[0], len(holders) - 1
    name = "someone else" if first.foreign else first.worker or f"lease {first.lease_id}"
    return name + (f" and {_count(others, 'other', one='1')}" if others else "")


def _count(count: int, noun: str, *, one: str = "a") -> str:
    return f"{one} {noun}" if count == 1 else f"{count} {noun}s"


def _chosen(it: "Chosen", now: int) -> str:
    priority = it.effective_priority.word
    how = f"{priority}, promoted" if it.promoted else priority
    at = clock_text(it.at, now)
    parts = [f"it started on {it.worker_id} at {at} as the first that could start ({how})"]
    if it.better_waiting:
        waiting = " and ".join(f"{count} of {word} priority" for word, count in it.better_waiting.items())
        parts.append(f"{waiting} waited for limits or for other workers")
    if it.skipped_for:
        parts.append(f"tasks that went before it were skipped because {_no_room(it.skipped_for)}")
    return "; ".join(parts)


def _no_room(limits: Sequence[str]) -> str:
    if len(limits) == 1:
        return f"{limits[0]} had no room"
    return f"{', '.join(limits[:-1])} and {limits[-1]} had no room"
