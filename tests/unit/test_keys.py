"""The table of keys. How it gets into the scripts is seen in test_scripts."""

import re

import pytest

from fairlead.errors import InvalidInput
from fairlead.store.keys import ALL, CHANNEL, FIXED, LIVE, PASSING, Keys

TYPES = {"hash", "zset", "list", "stream", "string"}


def test_every_key_is_in_the_table_once() -> None:
    names = [key.name for key in ALL]
    assert len(names) == len(set(names))
    assert ALL == FIXED + LIVE + PASSING


def test_every_key_has_a_plain_name_a_type_and_a_sentence(subtests: pytest.Subtests) -> None:
    for key in ALL:
        with subtests.test(key=key):
            name, kind, meaning = (getattr(key, field) for field in ("name", "type", "meaning"))
            assert re.fullmatch(r"[a-z]+", name)
            assert kind in TYPES
            assert len(meaning) > 5


def test_only_what_passes_has_an_end() -> None:
    assert {key.ends for key in FIXED + LIVE} == {"never"}
    assert all(key.ends != "never" for key in PASSING)


def test_all_keys_of_a_namespace_share_the_hash_tag_in_braces() -> None:
    keys = Keys("a.b-c_1")
    found = {keys.meta, keys.key(CHANNEL), keys.key("task", "t1"), keys.key("limits")}
    assert found == {
        "{fl:a.b-c_1}:meta",
        "{fl:a.b-c_1}:live",
        "{fl:a.b-c_1}:task:t1",
        "{fl:a.b-c_1}:limits",
    }


def test_a_namespace_that_would_break_the_keys_is_refused(subtests: pytest.Subtests) -> None:
    for name in ["", "a b", "a{b}", "x" * 65, "a:b", "ä", "a\n"]:
        with subtests.test(name=name):
            with pytest.raises(InvalidInput) as refused:
                Keys(name)
            assert refused.value.field == "namespace"
