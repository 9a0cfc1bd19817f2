"""What must hold of counts: what is counted where it changes is what a look at everything would find."""

from collections import Counter
from collections.abc import Iterator, Mapping

from fairlead.store import names
from fairlead.store.breach import Breach
from fairlead.store.snapshot import Fields, Snapshot, number

PLACES = ("0n", "0p", "1n", "1p", "2n")


def _compare(
    counted: Mapping[str, int], right: Mapping[str, int], what: str, slack: int = 0
) -> Iterator[Breach]:
    """`slack`: records that were deleted by somebody else; what they were counted for is not known."""
    for key in sorted(counted.keys() | right.keys()):
        have, should = counted.get(key, 0), right.get(key, 0)
        wrong = have != should or (key in counted and not should)
        if wrong and not 0 <= have - should <= slack:
            yield Breach("C1", f"{what} counts {have} tasks of {key!r}, there are {should}", f"{what} {key}")


def _numbers(fields: Fields) -> dict[str, int]:
    return {name: number(fields, name) for name in fields}


def _waiting(s: Snapshot) -> list[Fields]:
    return [t for t in s.tasks.values() if t.get("state") in ("queued", "delayed")]


def places(s: Snapshot) -> Iterator[Breach]:
    """C1: the tasks of each place, and their order, are those of its queues."""
    members: dict[str, dict[str, float]] = {place: {} for place in PLACES}
    for sub, queue in s.queues.items():
        members.setdefault(names.place_of(sub), {}).update(queue)
    for place in PLACES:
        counted = number(s.meta, f"queued_{place}")
        if counted != len(members[place]):
            sentence = f"meta counts {counted} tasks in {place}, there are {len(members[place])}"
            yield Breach("C1", sentence, f"queued_{place}")
        if s.zset("order", place) != members[place]:
            yield Breach("C1", f"order:{place} is not what the queues of {place} hold", f"order {place}")
        if s.zset("age", place).keys() != members[place].keys():
            yield Breach("C1", f"age:{place} is not what the queues of {place} hold", f"age {place}")


def owners(s: Snapshot) -> Iterator[Breach]:
    """C1: what waits is counted for its owner."""
    right = Counter(_owner(t) for t in _waiting(s))
    del right[""]
    yield from _compare(_numbers(s.hash("waiting")), right, "waiting", number(s.meta, "missing_records"))


def _owner(record: Fields) -> str:
    tenant, user = record.get("tenant", ""), record.get("user_id", "")
    size = len(tenant.encode(errors="surrogateescape"))
    return f"{size}:{tenant}:{user}" if tenant or user else ""


def kinds(s: Snapshot) -> Iterator[Breach]:
    """C1: what waits is counted for its route, tenant by tenant."""
    right: dict[str, Counter[str]] = {key: Counter() for key in s.hashes.get("kinds", {})}
    for t in _waiting(s):
        route = names.route(t.get("type", ""), t.get("capabilities", ""))
        right.setdefault("=" + t.get("tenant", ""), Counter())[route] += 1
    for key, routes in right.items():
        counted = _numbers(s.hashes.get("kinds", {}).get(key, {}))
        yield from _compare(counted, routes, f"kinds:{key}", number(s.meta, "missing_records"))


def limits(s: Snapshot) -> Iterator[Breach]:
    """C1: what waits is counted for each limit it needs; a limit made by a submit ends by itself."""
    right = {"waiting": Counter[str](), "delayed": Counter[str]()}
    for t in _waiting(s):
        field = "waiting" if t["state"] == "queued" else "delayed"
        right[field].update(names.needs(t.get("limits", "")).keys())
    for field, counts in right.items():
        counted = {name: number(limit, field) for name, limit in s.limits.items() if field in limit}
        known = {name: count for name, count in counts.items() if name in s.limits}
        yield from _compare(counted, known, f"{field} of limits", number(s.meta, "missing_records"))
    for name, limit in s.limits.items():
        if "group" in limit and not (
            number(limit, "used") or limit.keys() & {"waiting", "delayed", "waiters"}
        ):
            yield Breach("C1", f"limit {name} was made by a submit, and nothing needs it any more", name)
