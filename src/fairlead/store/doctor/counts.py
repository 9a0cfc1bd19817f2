"""Checks of counts: each count that acts keep equals what a look at everything finds."""

from collections import Counter
from collections.abc import Iterator, Mapping

from fairlead.store import names
from fairlead.store.doctor.snapshot import Breach, Fields, Scores, Snapshot, number


def _compare(
    counted: Mapping[str, int], right: Mapping[str, int], what: str, slack: int = 0
) -> Iterator[Breach]:
    """`slack`: how much higher than right a count may be."""
    for key in sorted(counted.keys() | right.keys()):
        have, should = counted.get(key, 0), right.get(key, 0)
        never_goes = key in counted and not have  # at 0 it should have been deleted
        if never_goes or (have != should and not 0 < have - should <= slack):
            yield Breach("C1", f"{what} counts {have} tasks of {key!r}, there are {should}", f"{what} {key}")


def _numbers(fields: Fields) -> dict[str, int]:
    return {name: number(fields, name) for name in fields}


def places(s: Snapshot) -> Iterator[Breach]:
    """C1: the tasks of each place, and their order, are those of its queues."""
    if s.torn:  # a queue that is newer than the list of keys is missing
        return
    members: dict[str, dict[str, float]] = {place: {} for place in names.PLACES}
    for sub, queue in s.queues.items():
        members.setdefault(names.place_of(sub), {}).update(queue)
    for place in names.PLACES:
        counted = number(s.meta, f"queued_{place}")
        if counted != len(members[place]):
            sentence = f"meta counts {counted} tasks in {place}, there are {len(members[place])}"
            yield Breach("C1", sentence, f"queued_{place}")
        if s.zset("order", place) != members[place]:
            yield Breach("C1", f"order:{place} is not what the queues of {place} hold", f"order {place}")
        if s.zset("age", place).keys() != members[place].keys():
            yield Breach("C1", f"age:{place} is not what the queues of {place} hold", f"age {place}")


def others(s: Snapshot) -> Iterator[Breach]:
    """C1: the other counts of meta, by which acts know what they need not look for."""
    if s.torn:
        return
    right = {
        "delayed": sum(map(len, s.sets.get("delayed", {}).values())),
        "wide_sub_queues": sum(map(names.may_overlap, s.queues)),
        "idle_workers": sum(map(len, s.sets.get("idlers", {}).values())),
    }
    for name, count in right.items():
        if number(s.meta, name) != count:
            yield Breach("C1", f"meta counts {number(s.meta, name)} {name}, there are {count}", name)


def what_waits(s: Snapshot) -> Iterator[Breach]:
    """C1: what waits is counted for its owner, for the kinds of its tenant, and for each limit it needs."""
    queued, delayed = _records(s, s.queues), _records(s, s.sets.get("delayed", {}))
    if queued is not None and delayed is not None:
        yield from _owners(s, [*queued, *delayed])
        yield from _kinds(s, [*queued, *delayed])
        yield from _limits(s, "waiting", queued)
        yield from _limits(s, "delayed", delayed)


def _records(s: Snapshot, tickets: Mapping[str, Scores]) -> list[Fields] | None:
    """The records of these members; None if the snapshot was taken in pieces and lacks some of them."""
    tasks = [names.cut_member(ticket)[1] for members in tickets.values() for ticket in members]
    if s.torn and not s.tasks.keys() >= set(tasks):
        return None
    return [s.tasks[task] for task in tasks if task in s.tasks]


def _slack(s: Snapshot) -> int:
    """Records that somebody else deleted: it is not known what they were counted for."""
    return number(s.meta, "missing_records")


def _owners(s: Snapshot, waiting: list[Fields]) -> Iterator[Breach]:
    right = Counter(_owner(t) for t in waiting)
    del right[""]
    yield from _compare(_numbers(s.hash("waiting")), right, "waiting", _slack(s))


def _owner(record: Fields) -> str:
    tenant, user = record.get("tenant", ""), record.get("user_id", "")
    size = len(tenant.encode(errors="surrogateescape"))
    return f"{size}:{tenant}:{user}" if tenant or user else ""


def _kinds(s: Snapshot, waiting: list[Fields]) -> Iterator[Breach]:
    counted = s.hashes.get("kinds", {})
    right: dict[str, Counter[str]] = {tenant: Counter() for tenant in counted}
    for t in waiting:
        route = names.route(t.get("type", ""), t.get("capabilities", ""))
        right.setdefault("=" + t.get("tenant", ""), Counter())[route] += 1
    for tenant, routes in right.items():
        yield from _compare(_numbers(counted.get(tenant, {})), routes, f"kinds:{tenant}", _slack(s))


def _limits(s: Snapshot, field: str, tasks: list[Fields]) -> Iterator[Breach]:
    needed = Counter(name for t in tasks for name in names.needs(t.get("limits", "")))
    counted = {name: number(limit, field) for name, limit in s.limits.items() if field in limit}
    right = {name: count for name, count in needed.items() if name in s.limits}
    yield from _compare(counted, right, f"{field} of limits", _slack(s))


def of_tenants(s: Snapshot) -> Iterator[Breach]:
    """C1: the tasks of a tenant are listed where they are."""
    right: set[tuple[str, str]] = set()
    for task, record in s.tasks.items():
        if "tenant" in record and (where := _where(s, task, record)):
            right.add((f"{where}:{record['tenant']}", task))
    listed = {(where, task) for where, tasks in s.sets.get("presence", {}).items() for task in tasks}
    for where, task in right - listed:
        yield Breach("C1", f"{s.describe(task)}, but presence:{where} does not have it", f"{where} {task}")
    # what somebody deleted was counted when it was missed, and may stay in the list
    for where, task in listed - right:
        if task in s.tasks or not (_slack(s) or s.torn):
            yield Breach("C1", f"presence:{where} has {task}, but {s.describe(task)}", f"{where} {task}")


def _where(s: Snapshot, task: str, record: Fields) -> str | None:
    if task in s.leased:
        return "r"
    return {"queued": record.get("place"), "delayed": "d"}.get(record.get("state", ""))


def groups(s: Snapshot) -> Iterator[Breach]:
    """C1: a limit made by a submit ends when nothing holds it or waits for it."""
    for name, limit in s.limits.items():
        if "group" in limit and not (
            number(limit, "used") or limit.keys() & {"waiting", "delayed", "waiters"}
        ):
            yield Breach("C1", f"limit {name} was made by a submit, and nothing needs it any more", name)
