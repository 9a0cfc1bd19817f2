"""Checks of each task: the indexes it is in, its lease, and its events."""

import re
from collections.abc import Iterator
from itertools import pairwise

from fairlead.model.states import REPLAYABLE, TERMINAL, TRANSITIONS, State
from fairlead.store import names
from fairlead.store.doctor.snapshot import Breach, Fields, Members, Snapshot, differences, join, number
from fairlead.store.records import Row

ALLOWED = {(before or "", act, to) for (before, act), ends in TRANSITIONS.items() for to in ends}
REMEMBERED = re.compile(r"\S+ \S+( \w+ [0-2] [0-2])?")  # digest, task id, how that ended


def sub_of(record: Fields) -> str:
    """The sub-queue a queued task belongs to."""
    route = names.route(record.get("type", ""), record.get("capabilities", ""))
    return f"{record.get('place', '')}:{route}|{record.get('limits', '')}"


def one_place(s: Snapshot) -> Iterator[Breach]:
    """I1: a waiting task is in the indexes of its state and in no other, and no index has a stranger."""
    expected: Members = {}
    for task, record in s.tasks.items():
        state = record.get("state")
        if state not in set(State):
            yield Breach("I1", f"task {task} has the state {state!r}, which does not exist", task)
        elif "stopping" in record and state != State.CANCELLED:
            yield Breach("I1", f"task {task} is {state}, but its worker is asked to stop it", task)
        member = names.member(number(record, "seq"), task)
        if state == State.QUEUED:
            expected[f"queue:{sub_of(record)}", member] = number(record, "tag")
            expected[f"age:{record.get('place', '')}", member] = number(record, "arrival")
            if "wait_until" in record:
                expected["waits", task] = number(record, "wait_until")
        elif state == State.DELAYED:
            expected[f"delayed:{record.get('priority', '')}", member] = number(record, "run_at")
    for lease, record in s.waiters.items():
        expected["waits", f"lease:{lease}"] = number(record, "wait_until")
    yield from _misplaced(s, "I1", expected, s.members("queue", "age", "delayed", "waits"))


def _misplaced(s: Snapshot, invariant: str, expected: Members, found: Members) -> Iterator[Breach]:
    for key, member, score, have in differences(expected, found):
        task = names.cut_member(member)[1] if key.startswith(("queue:", "age:", "delayed:")) else member
        status = _lease_status(s, task) if task.startswith("lease:") else s.describe(task)
        if have is None:
            sentence = f"{status}, but {key} does not have {member} (expected with score {score:.0f})"
        elif score is None:
            sentence = f"{key} has {member} with score {have:.0f}, but {status} and does not belong there"
        else:
            sentence = f"{key} has {member} with score {have:.0f}, but {status} and {score:.0f} is right"
        yield Breach(invariant, sentence, f"{key} {task}")


def _lease_status(s: Snapshot, holder: str) -> str:
    return f"{holder} is held" if holder in s.bare_leases else f"there is no {holder}"


def none_lost(s: Snapshot) -> Iterator[Breach]:
    """I1: a task whose events have not ended has a record."""
    for task, lives in s.stories.items():
        last = lives[-1][-1]
        if task not in s.tasks and last.after not in TERMINAL:
            yield Breach("I1", f"task {task} is lost: it was {last.after} last, and has no record", task)


def dead_are_listed(s: Snapshot) -> Iterator[Breach]:
    """I1: what can be replayed is in `dead` and in its tenant's list, and nothing else that has a record."""
    found = {place: at for place, at in s.members("dead", "deadof").items() if place[1] in s.tasks}
    forgotten = s.now - number(s.meta, "dead_ttl")
    expected: Members = {}
    for task, record in s.tasks.items():
        if record.get("state") in REPLAYABLE:
            ended = number(record, "finished")
            for key in ["dead", *([f"deadof:{record['tenant']}"] if "tenant" in record else [])]:
                if ended > forgotten or (key, task) in found:
                    expected[key, task] = ended
    yield from _misplaced(s, "I1", expected, found)


def one_lease(s: Snapshot) -> Iterator[Breach]:
    """I2: a lease for each running task, in the hands of its worker alone, and no other."""
    grace = number(s.meta, "grace")
    expected: Members = {}
    for task, record in s.leased.items():
        expected["leases", task] = number(record, "lease_until") + grace
        expected[f"running:{record.get('worker', '')}", task] = 0 if record.get("priority") == "0" else 1
    for holder, fields in s.bare_leases.items():
        expected["leases", holder] = number(fields, "until") + grace
    yield from _misplaced(s, "I2", expected, s.members("leases", "running"))


def fences_rise(s: Snapshot) -> Iterator[Breach]:
    """I5: no fence above the counter, none given twice, and within a task they only rise."""
    newest = number(s.meta, "fence")
    for holder, fields in [*s.tasks.items(), *s.bare_leases.items()]:
        if (fence := number(fields, "fence")) > newest:
            yield Breach("I5", f"{holder} has fence {fence}, but the newest ever given is {newest}", holder)
    holders: dict[int, str] = {}
    for holder, fields in [*s.leased.items(), *s.bare_leases.items()]:
        fence = number(fields, "stopping" if "stopping" in fields else "fence")
        if (other := holders.setdefault(fence, holder)) != holder:
            yield Breach("I5", f"the leases of {other} and {holder} both have fence {fence}", holder)
    for task, lives in s.stories.items():
        for life in lives:
            yield from _rising(life)
        fence, last = number(s.tasks.get(task, {}), "fence"), lives[-1][-1]
        if task in s.tasks and fence != last.fence:
            about = f"task {task} has fence {fence}, but its last event ({last.act}) has {last.fence}"
            yield Breach("I5", about, task)


def _rising(life: list[Row]) -> Iterator[Breach]:
    highest = -1
    for event in life:
        if event.fence < highest or (event.act == "claim" and event.fence == highest):
            sentence = f"task {event.task}: {event.act} at {event.at} has fence {event.fence} after {highest}"
            yield Breach("I5", sentence, event.task)
        highest = max(highest, event.fence)


def ends_once(s: Snapshot) -> Iterator[Breach]:
    """I6: nothing follows a terminal event but a replay (or, when the record has run out, a new submit)."""
    for task, lives in s.stories.items():
        for earlier, later in (pair for life in lives for pair in pairwise(life)):
            if earlier.after in TERMINAL and later.act != "replay":
                sentence = (
                    f"task {task} was {earlier.after} at {earlier.at}, yet {later.act} followed at {later.at}"
                )
                yield Breach("I6", sentence, task)
        newest = lives[-1][0]
        created = number(s.tasks.get(task, {}), "created")
        if len(lives) > 1 and task in s.tasks and created != newest.at:
            sentence = f"task {task} was submitted again at {newest.at}, yet its record is of {created}"
            yield Breach("I6", sentence, task)


def newest_fence_wins(s: Snapshot) -> Iterator[Breach]:
    """I7: what was completed was reported with the newest fence."""
    for task, record in s.tasks.items():
        if record.get("state") != State.COMPLETED:
            continue
        fence, reported = record.get("fence"), record.get("reported")
        if fence != reported:
            yield Breach(
                "I7", f"task {task} was completed with fence {reported}, its newest is {fence}", task
            )
        for event in s.stories.get(task, [[]])[-1]:
            if event.act == "complete" and event.fence != number(record, "reported"):
                sentence = f"task {task}: its complete event has fence {event.fence}, its record {reported}"
                yield Breach("I7", sentence, task)


def keys_name_one_task(s: Snapshot) -> Iterator[Breach]:
    """I8: an idempotency key leads to one task."""
    for key, value in s.strings.get("idempotency", {}).items():
        if not REMEMBERED.fullmatch(value):
            yield Breach(
                "I8", f"idempotency key {key} should name a digest and a task, but is {value!r}", key
            )
        elif (task := value.split(" ")[1]) in s.tasks and "state" not in s.tasks[task]:
            yield Breach("I8", f"idempotency key {key} names {task}, whose record is no task", key)


def events_are_a_path(s: Snapshot) -> Iterator[Breach]:
    """I9: each event continues the one before by an allowed transition, and the last one gives the state."""
    for task, lives in s.stories.items():
        for event in (event for life in lives for event in life):
            if (event.before, event.act, event.after) not in ALLOWED:
                step = f"{event.act} from {event.before or 'nothing'} to {event.after}"
                yield Breach("I9", f"task {task}: {step} at {event.at} is no transition", task)
        for earlier, later in (pair for life in lives for pair in pairwise(life)):
            ended = earlier.after in TERMINAL and later.act != "replay"  # reported by I6
            if earlier.after != later.before and not ended:
                sentence = (
                    f"task {task}: {later.act} at {later.at} from {later.before}, but it was {earlier.after}"
                )
                yield Breach("I9", sentence, task)
        for life, following in pairwise(lives):
            if (was := life[-1].after) not in TERMINAL:
                sentence = f"task {task} was submitted again at {following[0].at} while it was {was}"
                yield Breach("I9", sentence, task)
        if task in s.tasks and (state := s.tasks[task].get("state")) != lives[-1][-1].after:
            yield Breach("I9", f"task {task} is {state}, but its last event says {lives[-1][-1].after}", task)


def records_run_out(s: Snapshot) -> Iterator[Breach]:
    """K2: the record of a task that has ended runs out by itself, and no other does."""
    for (name, of), ttl in s.ttls.items():
        if name == "task":
            ended = s.tasks[of].get("state") in TERMINAL
            if ended and ttl == -1:
                yield Breach("K2", f"{s.describe(of)}, but its record never runs out", of)
            elif not ended and ttl != -1:
                yield Breach("K2", f"{s.describe(of)}, but its record runs out in {ttl} ms", of)
        elif name == "output":
            goes = s.tasks.get(of, {}).get("state") in {*TERMINAL, None}
            if goes != (ttl != -1):
                what = "never runs out" if goes else f"runs out in {ttl} ms"
                yield Breach("K2", f"{s.describe(of)}, but its output {what}", f"output {of}")
        elif name in ("worker", "wake", "idempotency", "recent", "caretaker") and ttl == -1:
            yield Breach("K2", f"{join(name, of)} never runs out", join(name, of))
