"""Checks of workers that wait: they are found, and called when there is something for them."""

from collections import Counter
from collections.abc import Iterator

from fairlead.store import names
from fairlead.store.doctor.limits import room
from fairlead.store.doctor.snapshot import Breach, Fields, Snapshot, number, whole

CALL_MS = 5_000  # a called worker has answered by then; an idle one has claimed by itself


def idle_workers(s: Snapshot) -> Iterator[Breach]:
    """S4: an idle worker is in the line of its profile, where it is found and woken, and in no other."""
    workers, counted = s.hashes.get("worker", {}), s.hash("idle")
    lines = s.sets.get("idlers", {})
    for line in counted.keys() | lines.keys():
        count, there = number(counted, line), len(lines.get(line, {}))
        if count != there:
            yield Breach("S4", f"line {line} counts {count} idle workers, there are {there}", line)
    for line, members in lines.items():
        for worker in members:
            if workers.get(worker, {}).get("idle") != line:
                what = "its record says otherwise" if worker in workers else "it has no record"
                yield Breach("S4", f"worker {worker} is idle in line {line}, but {what}", worker)
    for worker, record in workers.items():
        if "idle" in record and worker not in lines.get(record["idle"], {}):
            yield Breach("S4", f"worker {worker} is idle, but is in no line to be woken", worker)


def profiles(s: Snapshot) -> Iterator[Breach]:
    """S10: profiles count their workers, and each route is seen by exactly the profiles that serve it."""
    known = s.hash("profiles")
    texts = {field[2:]: text for field, text in known.items() if field.startswith("t:")}
    listed = s.hash("listed")
    counts = Counter(listed.values())
    for profile in sorted(texts.keys() | counts.keys()):
        if (counted := number(known, f"n:{profile}")) != counts[profile]:
            yield Breach(
                "S10", f"profile {profile} counts {counted} workers, it has {counts[profile]}", profile
            )
    for worker, record in s.hashes.get("worker", {}).items():
        if (have := listed.get(worker)) != (right := record.get("profile")):
            yield Breach("S10", f"worker {worker} has profile {right}, but is listed with {have}", worker)
    joining = {field[2:] for field in known if field.startswith("j:")}
    for route, audience in s.hash("routes").items():
        members = set(filter(None, s.hash("audiences").get(audience, "").split(",")))
        serving = {profile for profile, text in texts.items() if _serves(text, route)}
        if members - joining != serving - joining:
            sentence = f"route {route} is seen by profiles {sorted(members)}, but served by {sorted(serving)}"
            yield Breach("S10", sentence, route)


def _serves(profile: str, route: str) -> bool:
    types, _, offered = profile.partition(";")
    task_type, required = names.cut_route(route)
    return (types == "*" or task_type in types.split(",")) and required <= set(offered.split(","))


def nobody_idles(s: Snapshot) -> Iterator[Breach]:
    """S4: nobody who could run it is idle while a head can start, unless a call is on its way.

    To whomever: a worker that was called and leaves something behind that others can run calls one of them.
    """
    if s.torn or s.hash("relief"):  # a slot is kept for the task that something is taken back for
        return
    idle = {line[:-1] for line in s.hash("idle") if line.endswith("o")}
    workers = s.hashes.get("worker", {}).values()
    if any("called" in w and s.now - number(w, "called") <= CALL_MS for w in workers):
        return
    live = {
        w.get("profile")
        for w in workers
        if "idle" in w and s.now - number(w, "seen") <= CALL_MS  # longer ago: it is lost, or about to claim
    }
    if not idle & live or 0 < number(s.meta, "alarm") <= s.now:  # time itself has something to do first
        return
    for sub in s.queues:
        audience = s.hash("audiences").get(s.hash("routes").get(names.route_of(sub), ""), "").split(",")
        if idle & live & set(audience) and _can_start(s, sub):
            yield Breach(
                "S4", f"sub-queue {sub} can start, but workers that serve it are idle", f"idle {sub}"
            )


def _can_start(s: Snapshot, sub: str) -> bool:
    if names.cut_route(names.route_of(sub))[0] in s.hash("paused"):
        return False
    return all(
        room_for(s, s.limits.get(name, {}), sub) >= units for name, units in names.needs_of(sub).items()
    )


def room_for(s: Snapshot, limit: Fields, sub: str) -> int:
    """What a limit has now for a sub-queue, or for an acquire of a place."""
    if limit.get("kind") != "rate":
        return room(limit, whole(sub[0]), limit.get("hold") == sub)
    if limit.get("paused"):
        return 0
    burst, interval = number(limit, "burst"), number(limit, "interval") or 1
    return burst - -(-max(0, number(limit, "tat") - s.now * 1000) // interval)
