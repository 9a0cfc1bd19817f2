"""What must hold of the waiting line: all of it can be found, in its order, and time is told when to look."""

import re
from collections import Counter
from collections.abc import Iterator

from fairlead.store.breach import Breach, Standing, differences, standing
from fairlead.store.doctor_limits import needs, refilled_at, room
from fairlead.store.snapshot import Fields, Scores, Snapshot, number

SUB = re.compile(r"[0-2][np]:[^;|]*;[^|]*\|.*")
LOT = re.compile(r"([^=]+)=(\d+)(!?)@([0-2].*)")
THRESHOLDS = {"2n": "low_to_medium", "1n": "medium_to_high", "1p": "low_to_high"}


def lane_of(sub: str) -> str:
    return sub.partition("|")[0]


def needs_of(sub: str) -> dict[str, int]:
    return needs(sub.partition("|")[2])


def _first(members: Scores) -> tuple[str, str, float]:
    """Its seq, what follows the seq, its tag."""
    member, tag = next(iter(members.items()))
    return member[:13], member[13:], tag


def homes(s: Snapshot) -> Iterator[Breach]:
    """S3, S4, S10: each sub-queue with somebody in it has one home, known by its head."""
    known = s.hash("home")
    for sub, tickets in s.queues.items():
        home, (seq, task, _) = known.get(sub), _first(tickets)
        if home is None:
            sentence = f"sub-queue {sub} has no home: nobody looks at its {len(tickets)} tasks"
            yield Breach("S4", sentence, sub)
            continue
        if home[:13] != seq:
            sentence = f"the head of sub-queue {sub} is {task} with seq {seq}, but its home says {home[:13]}"
            yield Breach("S3", sentence, sub)
        if problem := _wrong_home(s, sub, home[13:]):
            yield Breach("S10", f"sub-queue {sub} {problem}", sub)
    for sub in known.keys() - s.queues.keys():
        yield Breach("S10", f"sub-queue {sub} has a home, but nobody is in it", sub)


def _wrong_home(s: Snapshot, sub: str, where: str) -> str | None:
    if where == "h":
        return None
    lot = LOT.fullmatch(where[1:]) if where.startswith("p") else None
    if not lot:
        return f"has the home {where!r}, which is none"
    name, units, own, lane = lot.groups()
    if needs_of(sub).get(name) != int(units) or lane != lane_of(sub):
        return f"is parked in lot {where[1:]}, but does not wait for that"
    owns = s.limits.get(name, {}).get("hold") == sub
    if owns != bool(own):
        return f"is parked in lot {where[1:]}, but its hold on {name} is {'there' if owns else 'not there'}"
    return None


def stands(s: Snapshot) -> Iterator[Breach]:
    """S3, S4, S10: sub-queues and markers stand where they should, by the tag of their first, and once."""
    expected: Standing = {}
    for sub, tickets in s.queues.items():
        home, (_, _, tag) = s.hash("home").get(sub, ""), _first(tickets)
        seq, where = home[:13], home[13:]
        if where == "h":
            expected[f"heads:{lane_of(sub)}", f"{seq}s{sub}"] = tag
        elif where:
            expected[f"parked:{where[1:]}", f"{seq}{sub}"] = tag
    for lot, parked in s.sets.get("parked", {}).items():
        name, _, rest = lot.partition("=")
        expected[f"lots:{name}", lot] = 0
        if marker := s.hash("markers").get(lot):
            expected[f"heads:{rest.partition('@')[2]}", f"{marker}m{lot}"] = _first(parked)[2]
    for key, member, right, have in differences(expected, standing(s, "heads", "parked", "lots")):
        if have is None:
            yield Breach(
                "S4", f"{member} is hidden: it belongs into {key}, but is not there", f"{key} {member}"
            )
        elif right is None:
            yield Breach("S10", f"{key} has {member}, which does not belong there", f"{key} {member}")
        else:
            sentence = f"{key} has {member} with score {have:.0f}, but the tag of its first is {right:.0f}"
            yield Breach("S3", sentence, f"{key} {member}")


def lots(s: Snapshot) -> Iterator[Breach]:
    """S3, S4, S10: a lot is shown by its marker if and only if its limit has room; a rate, in time."""
    lots, markers, refills = s.sets.get("parked", {}), s.hash("markers"), s.zset("refills")
    for lot, parked in lots.items():
        seq, marker = _first(parked)[0], markers.get(lot)
        parts = LOT.fullmatch(lot)
        limit = s.limits.get(parts[1]) if parts else None
        if not parts or not limit:
            yield Breach("S10", f"lot {lot} is parked at a limit that is not there", lot)
            continue
        if marker is not None and marker != seq:
            yield Breach("S3", f"the first of lot {lot} has seq {seq}, but its marker {marker}", lot)
        if problem := _wrongly_shown(limit, parts, marker is not None, refills.get(lot)):
            yield Breach("S4", f"lot {lot} {problem}", lot)
    for lot in markers.keys() - lots.keys():
        yield Breach("S10", f"lot {lot} has a marker, but nobody is parked there", lot)
    for lot in refills:
        limit = s.limits.get(lot.partition("=")[0], {})
        if lot not in lots or lot in markers or limit.get("kind") != "rate" or limit.get("paused"):
            yield Breach("S10", f"refills has lot {lot}, which does not wait for a rate", lot)


def _wrongly_shown(limit: Fields, lot: re.Match[str], shown: bool, refill: float | None) -> str | None:
    units = int(lot[2])
    if limit.get("kind") == "rate" and not limit.get("paused"):
        # time gives room without an act; the act that notices it comes at the refill
        if units > number(limit, "burst"):  # lowered: it can never be given, so nobody comes back for it
            return None
        instant = refilled_at(limit, units)
        if shown or (refill is not None and refill <= instant):
            return None
        entry = "has no refill" if refill is None else f"has its refill at {refill:.0f}"
        return f"has room at {instant} and no marker, but {entry}"
    free = room(limit, int(lot[4][0]), lot[3] == "!")
    if shown != (free >= units):
        return f"has a marker: {shown}, but limit {lot[1]} has room for {free}"
    return None


def counters(s: Snapshot) -> Iterator[Breach]:
    """S10: lanes and signatures count their sub-queues."""
    for name, start in (("lanes", lane_of), ("signatures", lambda sub: sub[3:])):
        counted = {key: number(s.hash(name), key) for key in s.hash(name)}
        right = Counter(start(sub) for sub in s.queues)
        for key in sorted(counted.keys() | right.keys()):
            if counted.get(key, 0) != right[key] or (key in counted and not right[key]):
                sentence = f"{name} counts {counted.get(key, 0)} sub-queues of {key}, there are {right[key]}"
                yield Breach("S10", sentence, f"{name} {key}")


def waiting(s: Snapshot) -> Iterator[Breach]:
    """C1: what waits is counted for its owner."""
    counted = {owner: number(s.hash("waiting"), owner) for owner in s.hash("waiting")}
    right = Counter(_owner(t) for t in s.tasks.values() if t.get("state") in ("queued", "delayed"))
    for owner in sorted(counted.keys() | right.keys() - {""}):
        if counted.get(owner, 0) != right[owner] or (owner in counted and not right[owner]):
            sentence = f"waiting counts {counted.get(owner, 0)} tasks of {owner}, there are {right[owner]}"
            yield Breach("C1", sentence, f"waiting {owner}")


def _owner(record: Fields) -> str:
    tenant, user = record.get("tenant", ""), record.get("user_id", "")
    size = len(tenant.encode(errors="surrogateescape"))
    return f"{size}:{tenant}:{user}" if tenant or user else ""


def patience(s: Snapshot) -> Iterator[Breach]:
    """S10: each sub-queue with several limits has an instant from which it may ask for a hold."""
    found = s.zset("patience")
    for sub, tickets in s.queues.items():
        if len(needs_of(sub)) < 2:
            continue
        arrival, instant = number(s.tasks.get(_first(tickets)[1], {}), "arrival"), found.get(sub)
        if instant is None:
            yield Breach("S10", f"sub-queue {sub} needs several limits, but patience does not have it", sub)
        elif instant < arrival or (sub[1] == "p" and instant != arrival):
            sentence = f"patience of sub-queue {sub} is {instant:.0f}, but its head arrived at {arrival}"
            yield Breach("S10", sentence, sub)
    for sub in found:
        if sub not in s.queues or len(needs_of(sub)) < 2:
            yield Breach("S10", f"patience has {sub}, which is no sub-queue with several limits", sub)


def holds(s: Snapshot) -> Iterator[Breach]:
    """S10: a hold is of a waiting head, and each of its limits keeps back exactly what that needs."""
    owners = s.hash("holds")
    for name, limit in s.limits.items():
        sub, units = limit.get("hold"), limit.get("hold_units")
        if sub is None and units is None:
            continue
        if sub not in owners:
            yield Breach("S10", f"limit {name} is held for {sub}, which has no hold", f"{name} {sub}")
        elif number(limit, "hold_units") != needs_of(sub).get(name):
            sentence = f"limit {name} holds back {units} for {sub}, which needs {needs_of(sub).get(name, 0)}"
            yield Breach("S10", sentence, f"{name} {sub}")
    for sub, task in owners.items():
        if task not in (ticket[13:] for ticket in s.queues.get(sub, {})):
            yield Breach("S10", f"the hold of {sub} is for {task}, which does not wait there", sub)
        if not any(limit.get("hold") == sub for limit in s.limits.values()):
            yield Breach("S10", f"the hold of {sub} keeps no limit back", sub)


def alarm(s: Snapshot) -> Iterator[Breach]:
    """S4: the alarm is not later than what time does next."""
    due: list[tuple[float, str]] = []
    for (key, member), instant in standing(s, "leases", "delayed", "waits", "refills").items():
        due.append((instant, f"{member} of {key}"))
    for place, threshold in THRESHOLDS.items():
        if after := number(s.meta, threshold):
            due += [(at + after, f"{task} of age:{place}") for task, at in s.zset("age", place).items()]
    if due:
        instant, what = min(due)
        if "alarm" not in s.meta or number(s.meta, "alarm") > instant:
            at = s.meta.get("alarm", "not set")
            yield Breach("S4", f"{what} is due at {instant:.0f}, but the alarm is {at}", "alarm")


def idle_workers(s: Snapshot) -> Iterator[Breach]:
    """S4: an idle worker stands in the line of its profile, where it is found and woken, and in no other."""
    workers, profiles = s.hashes.get("worker", {}), s.hash("idle")
    lines = s.sets.get("idlers", {})
    for profile in profiles.keys() ^ lines.keys():
        sentence = f"profile {profile} is {'' if profile in profiles else 'not '}known as idle, but has "
        yield Breach("S4", sentence + ("nobody idle" if profile in profiles else "idle workers"), profile)
    for profile, line in lines.items():
        for worker in line:
            if workers.get(worker, {}).get("idle") != profile:
                what = "its record says otherwise" if worker in workers else "it has no record"
                yield Breach("S4", f"worker {worker} is idle in profile {profile}, but {what}", worker)
    for worker, record in workers.items():
        if "idle" in record and worker not in lines.get(record["idle"], {}):
            yield Breach("S4", f"worker {worker} is idle, but stands in no line to be woken", worker)
