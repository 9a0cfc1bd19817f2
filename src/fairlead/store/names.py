"""Texts with parts in the store's keys and values: the twin of `lua/lib/names.lua`, for those who read them.

A route is `type;capability,capability`, a sub-queue `place:route|limit=units,...`, a lane `place:audience`, a
lot `limit=units,...@lane` (`limit=units!@lane` of the owner of a hold). Members of queues, heads and lots
begin with the seq in 13 digits. A position is the seq of a head, `h` or `p`, then the lane or the lot. A
waiter is a seq, a place, units, `:` and a lease.
"""

import re
from typing import NamedTuple

SEQ_DIGITS = 13
LOTS_OF_TIERS = "tier:"
PLACES = ("0n", "0p", "1n", "1p", "2n")  # a class of priority, native or promoted
NEED = re.compile(r"([^=,]+)=([0-9]{1,15})(?=,|$)")
LOT = re.compile(r"((?:[^=,]+=\d+,)*[^=,]+=\d+)(!?)@([0-2][np]:.*)")
WAITER = re.compile(r"([0-2][np])([0-9]{1,15}):(.*)", re.DOTALL)  # after its seq


class Lot(NamedTuple):
    needs: dict[str, int]
    is_owner: bool
    lane: str


class Position(NamedTuple):
    seq: str
    is_parked: bool
    where: str  # the lane, or the lot


def member(seq: int, about: str) -> str:
    return f"{seq:0{SEQ_DIGITS}d}{about}"


def cut_member(text: str) -> tuple[str, str]:
    """Its seq, and what it is about: a task, a sub-queue or a lot."""
    return text[:SEQ_DIGITS], text[SEQ_DIGITS:]


def waiter(seq: int, place: str, units: int, lease: str) -> str:
    return member(seq, f"{place}{units}:{lease}")


def cut_waiter(text: str) -> tuple[str, int, str] | None:
    """Its place, units and lease; None when it is no waiter."""
    parts = WAITER.fullmatch(text, SEQ_DIGITS)
    return (parts[1], int(parts[2]), parts[3]) if parts else None


def route(task_type: str, capabilities: str) -> str:
    return f"{task_type};{capabilities}"


def route_of(sub: str) -> str:
    return sub[3:].partition("|")[0]


def cut_route(text: str) -> tuple[str, frozenset[str]]:
    """Its type and its capabilities."""
    task_type, _, capabilities = text.partition(";")
    return task_type, frozenset(filter(None, capabilities.split(",")))


def needs_of(sub: str) -> dict[str, int]:
    return needs(sub.partition("|")[2])


def lots_of(limit: str) -> str:
    """What the lots of a limit are listed as: those of all tiers together, because tiers are nested."""
    return LOTS_OF_TIERS if limit.startswith(LOTS_OF_TIERS) else limit


def may_overlap(sub: str) -> bool:
    """Whether it needs several limits, which are not all those of tiers."""
    needed = needs_of(sub)
    return len(needed) > 1 and any(lots_of(name) != LOTS_OF_TIERS for name in needed)


def needs(text: str) -> dict[str, int]:
    """`a=1,b=24` -> units by limit."""
    return {name: int(units) for name, units in NEED.findall(text)}


def place_of(text: str) -> str:
    """Of a sub-queue or a lane."""
    return text[:2]


def audience_of(lane: str) -> str:
    return lane[3:]


def needs_of_lot(lot: str) -> dict[str, int]:
    return needs(lot.partition("@")[0].removesuffix("!"))


def cut_lot(text: str) -> Lot | None:
    if not (parts := LOT.fullmatch(text)):
        return None
    return Lot(needs(parts[1]), parts[2] == "!", parts[3])


def cut_position(text: str) -> Position | None:
    seq, kind, where = text[:SEQ_DIGITS], text[SEQ_DIGITS : SEQ_DIGITS + 1], text[SEQ_DIGITS + 1 :]
    return Position(seq, kind == "p", where) if kind in ("h", "p") else None


def type_limit(task_type: str) -> str:
    """The limit that a pause of a task type is."""
    return f"~{task_type}"
