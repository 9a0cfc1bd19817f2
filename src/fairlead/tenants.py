"""What tenants name themselves, kept apart: two tenants that choose the same id mean two things."""

import hashlib
import uuid

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
    """The ids that whoever asks for this one may mean: that of an answer, or the one that it chose."""
    return (given,) if tenant is None else (given, id_of(tenant, given))
