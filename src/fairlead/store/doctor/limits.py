"""Checks of limits and workers: leases hold exactly the units in use, and never more than allowed."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from fairlead.model.tenants import cut_name
from fairlead.store.doctor.snapshot import Breach, Fields, Snapshot, differences, number
from fairlead.store.names import needs, needs_of_lot


def room(limit: Fields, priority: int, is_owner: bool) -> int:
    """What a slots limit has for a sub-queue of this priority, beside a hold that is not its own."""
    if limit.get("paused"):
        return 0
    free = number(limit, "limit") - number(limit, "used")
    hold = limit.get("hold")
    if hold and not is_owner and str(priority) >= hold[0]:
        free -= number(limit, "hold_units")
    return free - sum(number(limit, f"kept{better}") for better in range(priority + 1))


def refilled_at(limit: Fields, units: int) -> int:
    """The first millisecond at which a rate limit has this many units again."""
    missing = number(limit, "tat") + (units - number(limit, "burst")) * number(limit, "interval")
    return -(-missing // 1000)


def _held(s: Snapshot) -> dict[tuple[str, str], int]:
    """(limit, holder) -> units that are noted for it."""
    held = s.hashes.get("holders", {})
    return {(name, holder): number(of, holder) for name, of in held.items() for holder in of}


def _taken(s: Snapshot) -> dict[tuple[str, str], int]:
    """(limit, holder) -> units that go with its lease."""
    taken = {}
    for task, record in s.leased.items():
        for field in ("limits", "optional", "revoked"):
            for name, units in needs(record.get(field, "")).items():
                taken[name, task] = units
    for holder, fields in s.bare_leases.items():
        taken[fields.get("limit", ""), holder] = number(fields, "units")
    return taken


def use_is_held(s: Snapshot) -> Iterator[Breach]:
    """I3: the units in use are those of the leases."""
    found, sums = _held(s), Counter[str]()
    for (name, _), noted in found.items():
        sums[name] += noted
    for name, limit in s.limits.items():
        used, held = number(limit, "used"), sums[name]
        if used != held:
            yield Breach("I3", f"limit {name} counts {used} units in use, but its leases hold {held}", name)
        if "kind" not in limit:
            yield Breach("I3", f"limit {name} has fields, but nobody defined it", name)
    listed = s.zset("limits")
    for name in s.limits.keys() ^ listed.keys():
        where = "is not among the names of all limits" if name in s.limits else "is named, but not defined"
        yield Breach("I3", f"limit {name} {where}", name)
    for name, holder, units, have in differences(_taken(s), found):
        if have is not None:
            right = "no lease of it needs any" if units is None else f"its lease needs {units:.0f}"
            sentence = f"{have:.0f} units of limit {name} are held by {holder}, but {right}"
            yield Breach("I3", sentence, f"{name} {holder}")


def all_units_or_none(s: Snapshot) -> Iterator[Breach]:
    """I4, S2: a lease holds units of each slots limit it needs. (Rates are used up when it starts.)"""
    leases, held = s.leased | s.bare_leases, _held(s)
    for (name, holder), units in _taken(s).items():
        limit, lease = s.limits.get(name, {}), leases[holder]
        fence = number(lease, "stopping" if "stopping" in lease else "fence")
        # what was a rate when the lease began took no units of what is slots now
        before = "redefined" in limit and fence <= number(limit, "redefined")
        if limit.get("kind") != "rate" and (name, holder) not in held and not before:
            sentence = f"the lease of {holder} needs {units} units of limit {name}, but holds none of them"
            yield Breach("I4", sentence, f"{name} {holder}")


def within_limits(s: Snapshot) -> Iterator[Breach]:
    """S1: no limit has more in use than it allows, unless it was lowered."""
    for name, limit in s.limits.items():
        used, most = number(limit, "used"), number(limit, "limit")
        if limit.get("kind") == "slots" and used > most and name not in s.lowered:
            yield Breach("S1", f"limit {name} allows {most} units, but {used} are in use", name)


def refills_are_near(s: Snapshot) -> Iterator[Breach]:
    """S4: what waits for a rate waits no longer than the burst of that rate takes to grow back."""
    if number(s.meta, "rated") > s.now:  # the clock was set back, and nobody has claimed since
        return
    for lot in s.zset("refills").keys() & s.sets.get("parked", {}).keys():
        refill, needed = s.zset("refills")[lot], needs_of_lot(lot)
        rates = [s.limits[name] for name in needed if s.limits.get(name, {}).get("kind") == "rate"]
        grown = [-(-number(rate, "burst") * number(rate, "interval") // 1000) for rate in rates]
        latest = s.now + max(grown, default=0)
        if rates and refill > latest:
            sentence = f"lot {lot} has its refill at {refill:.0f}, but all of its burst is there at {latest}"
            yield Breach("S4", sentence, f"refill {lot}")


def declarations(s: Snapshot) -> Iterator[Breach]:
    """K3: what is declared of a type can be read by a submit, and names limits that are defined."""
    for field, declared in s.hash("types").items():
        try:
            limits = msgspec.json.decode(declared, type=dict[str, str | int]).get("limits", "")
        except (msgspec.DecodeError, UnicodeEncodeError):
            yield Breach("K3", f"what is declared of {field} cannot be read: {declared!r}", field)
            continue
        for name in needs(str(limits)).keys() - s.limits.keys():
            yield Breach("K3", f"{field} is declared to need limit {name}, which nobody defined", field)


def declared_by_code(s: Snapshot) -> Iterator[Breach]:
    """K7: what code declares is listed by when that was, and is forgotten a day later."""
    declared = {
        f"{kind}:{field.removeprefix('code:')}"
        for kind in ("types", "pipelines")
        for field in s.hash(kind)
        if field.startswith("code:")
    }
    for name in declared ^ s.zset("declarations").keys():
        where = "is not listed by when that was" if name in declared else "is listed, but not declared"
        yield Breach("K7", f"what code declares: {name} {where}", f"declared {name}")


def shared_with_tenants(s: Snapshot) -> Iterator[Breach]:
    """K5: the limits that every tenant may name are listed as such, and are none of a tenant's own."""
    marked = {name for name, limit in s.limits.items() if limit.get("shared")}
    for name in marked ^ s.zset("shared").keys():
        where = (
            "is not among the names of shared limits" if name in marked else "is listed as shared, but is not"
        )
        yield Breach("K5", f"limit {name} {where}", name)
    for name in marked:
        if cut_name(name)[0] is not None:
            yield Breach("K5", f"limit {name} is one tenant's own, but is shared with all", f"own {name}")


def within_capacity(s: Snapshot) -> Iterator[Breach]:
    """S8: no worker runs more than its capacity, and its reserve runs only base high."""
    for worker, record in s.hashes.get("worker", {}).items():
        running = s.zset("running", worker)
        capacity, reserve = number(record, "capacity"), number(record, "reserve")
        not_high = [task for task, score in running.items() if score != 0]
        for tasks, most, what in (
            (list(running), capacity, "tasks"),
            (not_high, capacity - reserve, "tasks that are not of base high"),
        ):
            # started before it registered with less: those may run on
            newest = max((number(s.tasks.get(task, {}), "started") for task in tasks), default=0)
            if len(tasks) > most and newest > number(record, "registered"):
                sentence = f"worker {worker} has room for {most} {what}, but runs {len(tasks)}"
                yield Breach("S8", sentence, f"{worker} {what}")
