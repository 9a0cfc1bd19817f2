"""What tenants name themselves, kept apart: two tenants that choose the same name or id mean two things.

In the store the limit `gpu` of tenant `acme` is called `acme/gpu`, and its lease `l` is `acme/l`. Nobody can
write such a name: names have no slash. One without is the operator's. Only this module makes and cuts them;
the acts get the part before the name as a `scope`, and `lua/lib/tenants.lua` finds what a tenant means by it.
"""

import hashlib
import uuid
from collections.abc import Mapping
from urllib.parse import quote, unquote

VERSION_8 = 0x8 << 76  # an id with content of our own, never one that is made at random
VARIANT = 0x2 << 62


def id_of(tenant: str | None, chosen: str) -> str:
    """The id of the task or job for which the client of a tenant chose this id; an operator's is as chosen.

    It does not depend on what there is, so nobody learns from it which ids others have, and the client that
    repeats its call means the same task.
    """
    if tenant is None:
        return chosen
    name = tenant.encode()
    digest = hashlib.sha256(b"%d:%b:%b" % (len(name), name, chosen.encode())).digest()
    bits = int.from_bytes(digest[:16]) & ~(0xF << 76 | 0x3 << 62)
    return str(uuid.UUID(int=bits | VERSION_8 | VARIANT))


def ids_meant(tenant: str | None, given: str) -> tuple[str, ...]:
    """The ids that a tenant may mean by this one: that of an answer, or the one that it chose."""
    return (given,) if tenant is None else (given, id_of(tenant, given))


def scope_of(tenant: str | None) -> str:
    """What the names of a tenant begin with in the store. A tenant may be called anything: it is encoded."""
    return "" if tenant is None else quote(tenant, safe="").replace("~", "%7E") + "/"


def cut_name(stored: str) -> tuple[str | None, str]:
    """The tenant it belongs to (None: the operator), and the name as that tenant writes it."""
    scope, slash, name = stored.partition("/")
    return (unquote(scope), name) if slash else (None, stored)


def plain_name(stored: str) -> str:
    return cut_name(stored)[1]


def plain_needs(needs: Mapping[str, int]) -> dict[str, int]:
    """Units by name, for a task that needs limits of its tenant; those with the same name stay apart."""
    known: dict[str, int] = {name: units for name, units in needs.items() if "/" not in name}
    for name, units in needs.items():
        known[name if plain_name(name) in known else plain_name(name)] = units
    return known
