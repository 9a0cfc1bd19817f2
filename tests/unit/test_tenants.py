"""What tenants name is kept apart by names that do not depend on what there is."""

import uuid

from fairlead.checks import UUID
from fairlead.tenants import id_of, ids_meant

CHOSEN = "01890000-0000-7000-8000-000000000000"


def test_an_operators_id_is_as_chosen() -> None:
    assert id_of(None, CHOSEN) == CHOSEN
    assert ids_meant(None, CHOSEN) == (CHOSEN,)


def test_a_tenants_id_is_its_own_and_always_the_same() -> None:
    made = [id_of(tenant, CHOSEN) for tenant in ("a", "b", "a", "1:a")]
    assert made[0] == made[2] and len(set(made)) == 3 and CHOSEN not in made
    for one in made:
        assert UUID.fullmatch(one)
        assert (uuid.UUID(one).version, uuid.UUID(one).variant) == (8, uuid.RFC_4122)
    assert ids_meant("a", CHOSEN) == (CHOSEN, made[0])


def test_a_tenants_name_cannot_be_moved_into_the_id() -> None:
    assert id_of("a", "b:" + CHOSEN) != id_of("a:b", CHOSEN)
