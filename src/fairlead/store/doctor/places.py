"""Checks of what waits: all of it can be found, in its order, and the alarm is set for what is due next."""

from collections.abc import Iterator

from fairlead.store import names
from fairlead.store.doctor.limits import refilled_at, room
from fairlead.store.doctor.snapshot import Breach, Fields, Members, Scores, Snapshot, differences, number
from fairlead.store.names import Lot, needs_of

THRESHOLDS = {"2n": "low_to_medium", "1n": "medium_to_high", "1p": "low_to_high"}


def _first(members: Scores) -> tuple[str, str, float]:
    """Its seq, what follows the seq, its tag."""
    member, tag = next(iter(members.items()))
    return *names.cut_member(member), tag


def _limit(s: Snapshot, name: str) -> Fields | None:
    """Also the one that a pause of a task type is."""
    if not name.startswith("~"):
        return s.limits.get(name)
    paused = s.hash("paused").get(name[1:])
    return {"kind": "type", **({"paused": paused} if paused else {})}


def positions(s: Snapshot) -> Iterator[Breach]:
    """S3, S4, S10: each sub-queue with somebody in it has one position, under the seq of its head."""
    known = s.hash("home")
    for sub, members in s.queues.items():
        position, (seq, task, _) = names.cut_position(known.get(sub, "")), _first(members)
        if position is None:
            sentence = f"sub-queue {sub} has no position: no worker looks at its {len(members)} tasks"
            yield Breach("S4", sentence, sub)
            continue
        if position.seq != seq:
            sentence = (
                f"the head of sub-queue {sub} is {task} with seq {seq}, but its position says {position.seq}"
            )
            yield Breach("S3", sentence, sub)
        if problem := _wrong_lane(s, sub, position) or _wrong_lot(s, sub, position):
            yield Breach("S10", f"sub-queue {sub} {problem}", sub)
    for sub in known.keys() - s.queues.keys():
        yield Breach("S10", f"sub-queue {sub} has a position, but nobody is in it", sub)


def _wrong_lane(s: Snapshot, sub: str, position: names.Position) -> str | None:
    """While a profile joins, sub-queues may still be in lanes that only the others see."""
    lot = names.cut_lot(position.where) if position.is_parked else None
    lane = lot.lane if lot else position.where
    audience = s.hash("routes").get(names.route_of(sub), "")
    if names.place_of(lane) != names.place_of(sub) or (
        names.audience_of(lane) != audience
        and not any(field.startswith("j:") for field in s.hash("profiles"))
    ):
        return f"is in lane {lane}, but its audience is {audience!r}"
    return None


def _wrong_lot(s: Snapshot, sub: str, position: names.Position) -> str | None:
    if not position.is_parked:
        return None
    if not (lot := names.cut_lot(position.where)):
        return f"has the position {position.where!r}, which is not a lane or a lot"
    task_type = names.cut_route(names.route_of(sub))[0]
    paused = {names.type_limit(task_type): 1}
    if not lot.needs.items() <= needs_of(sub).items() and lot.needs != paused:
        return f"is parked in lot {position.where}, but does not wait for that"
    owned = [name for name in lot.needs if s.limits.get(name, {}).get("hold") == sub]
    if lot.is_owner != bool(owned):
        there = "there" if owned else "not there"
        return f"is parked in lot {position.where}, but its hold on one of these limits is {there}"
    return None


def indexes(s: Snapshot) -> Iterator[Breach]:
    """S3, S4, S10: sub-queues and markers are in the right index, by the tag of their first, and once."""
    expected: Members = {}
    for sub, members in s.queues.items():
        expected[f"subs:{names.route_of(sub)}", sub] = 0
        position, (_, _, tag) = names.cut_position(s.hash("home").get(sub, "")), _first(members)
        if position and position.is_parked:
            expected[f"parked:{position.where}", f"{position.seq}{sub}"] = tag
        elif position:
            expected[f"heads:{position.where}", f"{position.seq}s{sub}"] = tag
    for lot, parked in s.sets.get("parked", {}).items():
        for name in names.needs_of_lot(lot):
            expected[f"lots:{names.lots_of(name)}", lot] = 0
        if marker := s.hash("markers").get(lot):
            expected[f"heads:{lot.partition('@')[2]}", f"{marker}m{lot}"] = _first(parked)[2]
    for key, member, right, have in differences(expected, s.members("heads", "parked", "lots", "subs")):
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
    for name, parked in lots.items():
        seq, marker, lot = _first(parked)[0], markers.get(name), names.cut_lot(name)
        limits = {limit: _limit(s, limit) for limit in lot.needs} if lot else {}
        if not lot or not all(limits.values()):
            yield Breach("S10", f"lot {name} is parked at a limit that is not there", name)
            continue
        if marker is not None and marker != seq:
            yield Breach("S3", f"the first of lot {name} has seq {seq}, but its marker {marker}", name)
        if problem := _wrongly_shown(s, lot, marker is not None, refills.get(name)):
            yield Breach("S4", f"lot {name} {problem}", name)
    for name in markers.keys() - lots.keys():
        yield Breach("S10", f"lot {name} has a marker, but nobody is parked there", name)
    for name in refills:
        rates = [s.limits.get(limit, {}) for limit in names.needs_of_lot(name)]
        waits = any(limit.get("kind") == "rate" and not limit.get("paused") for limit in rates)
        if name not in lots or name in markers or not waits:
            yield Breach("S10", f"refills has lot {name}, which does not wait for a rate", name)


def _wrongly_shown(s: Snapshot, lot: Lot, shown: bool, refill: float | None) -> str | None:
    """By those of its limits that no time changes; then by its rates."""
    refilled: list[int] = []
    for name, units in lot.needs.items():
        limit = _limit(s, name) or {}
        if limit.get("kind") == "rate" and not limit.get("paused"):
            # time gives room without an act; the act that notices it comes at the refill
            if units > number(limit, "burst"):  # lowered: it is never given, so nobody comes back for it
                return None
            refilled.append(refilled_at(limit, units))
            continue
        free = _free(limit, lot)
        if free < units:
            return f"has a marker, but limit {name} has room for {free}" if shown else None
    if shown:
        return None
    if not refilled:
        rooms = ", ".join(f"{name} has room for {_free(_limit(s, name) or {}, lot)}" for name in lot.needs)
        return f"has no marker, but {rooms}"
    if refill is not None and refill <= max(refilled):
        return None
    entry = "has no refill" if refill is None else f"has its refill at {refill:.0f}"
    return f"has room at {max(refilled)} and no marker, but {entry}"


def _free(limit: Fields, lot: Lot) -> int:
    if limit.get("kind") == "type":
        return 0 if "paused" in limit else max(lot.needs.values())
    return room(limit, int(lot.lane[0]), lot.is_owner)


def patience(s: Snapshot) -> Iterator[Breach]:
    """S10: each sub-queue of several limits is watched once: it may ask for a hold, or they are nested."""
    asking, nested = s.zset("patience"), s.zset("nested")
    for sub, members in s.queues.items():
        if not names.may_overlap(sub):
            continue
        if (sub in asking) == (sub in nested):
            where = "twice" if sub in asking else "nowhere"
            yield Breach("S10", f"sub-queue {sub} needs several limits, but is watched {where}", sub)
        arrival = number(s.tasks.get(_first(members)[1], {}), "arrival")
        if sub in asking and asking[sub] < arrival:
            sentence = (
                f"sub-queue {sub} may ask for a hold at {asking[sub]:.0f}, before its head came at {arrival}"
            )
            yield Breach("S10", sentence, sub)
        if nested.get(sub, 0) > number(s.meta, "overlap_changes"):
            yield Breach("S10", f"sub-queue {sub} is nested after a change of limits that never was", sub)
    for sub in [*asking, *nested]:
        if sub not in s.queues or not names.may_overlap(sub):
            yield Breach("S10", f"{sub} is watched for a hold, but is no sub-queue of several limits", sub)


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
    for sub, value in owners.items():
        task = value.partition(" ")[2]
        if task not in (names.cut_member(member)[1] for member in s.queues.get(sub, {})):
            yield Breach("S10", f"the hold of {sub} is for {task}, which does not wait there", sub)
        if not any(limit.get("hold") == sub for limit in s.limits.values()):
            yield Breach("S10", f"the hold of {sub} keeps no limit back", sub)


def alarm(s: Snapshot) -> Iterator[Breach]:
    """S4: the alarm is not later than what time does next."""
    timed = s.members("leases", "delayed", "waits", "refills", "revisits", "orphans")
    due = [(instant, f"{member} of {key}") for (key, member), instant in timed.items()]
    for place, threshold in THRESHOLDS.items():
        if after := number(s.meta, threshold):
            due += [(at + after, f"{task} of age:{place}") for task, at in s.zset("age", place).items()]
    if due:
        instant, what = min(due)
        if "alarm" not in s.meta or number(s.meta, "alarm") > instant:
            at = s.meta.get("alarm", "not set")
            yield Breach("S4", f"{what} is due at {instant:.0f}, but the alarm is {at}", "alarm")
