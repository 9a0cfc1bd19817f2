"""Ids and names of tenants are kept apart by a rule that does not depend on stored data."""

import uuid

import pytest

from fairlead.checks import NAME, UUID
from fairlead.model.tenants import cut_name, id_of, ids_meant, plain_name, plain_needs, scope_of

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


def test_a_tenants_names_are_read_back_and_no_client_can_write_them(subtests: pytest.Subtests) -> None:
    for tenant in ["acme", "a/b", "a=1,b", "~draw", "!@|", "%2F", "Käse & Co", "0", "a" * 200]:
        with subtests.test(tenant=tenant):
            stored = scope_of(tenant) + "gpu"
            assert cut_name(stored) == (tenant, "gpu")
            assert not NAME.fullmatch(stored)
            assert not set("=,!@|~;") & set(stored), "these have a meaning in the texts of the store"


def test_an_operators_names_are_unchanged() -> None:
    assert scope_of(None) == ""
    assert cut_name("service:x.y-z_1") == (None, "service:x.y-z_1")


def test_two_tenants_never_share_a_name() -> None:
    names = {scope_of(tenant) + name for tenant in ("a", "a/b", "a%2Fb", "A") for name in ("x", "b:x")}
    assert len(names) == 8


def test_needs_are_shown_as_they_were_written_unless_two_are_called_the_same() -> None:
    assert plain_name("acme/gpu") == plain_name("gpu") == "gpu"
    assert plain_needs({"acme/gpu": 2, "licence": 1}) == {"gpu": 2, "licence": 1}
    assert plain_needs({"acme/gpu": 2, "gpu": 1}) == {"acme/gpu": 2, "gpu": 1}
