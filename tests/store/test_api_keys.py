"""API keys in the store: made once, checked by digest, ended at once, rotated with an overlap."""

import asyncio
import re
from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.model.key import SCOPES
from fairlead.store.access import api_keys
from fairlead.store.access.api_keys import id_of
from fairlead.store.store import Store
from tests.api_keys import usable_key
from tests.conftest import Clock
from tests.store.namespace import everything, key_names

DAY = 86_400


async def test_a_new_key_is_shown_with_what_it_may_do(store: Store, clock: Clock) -> None:
    new = await store.api_keys.create("web", ["read", "submit"], tenant="acme", expires_seconds=90 * DAY)
    namespace = re.escape(store.connection.keys.namespace)
    assert re.fullmatch(rf"flk_[a-z0-9]{{8}}_[A-Za-z0-9_-]{{43}}\.{namespace}", new.key_text)
    key = await store.api_keys.get(id_of(new.key_text))
    assert key == new.api_key
    assert (key.name, key.scopes, key.tenant) == ("web", ("submit", "read"), "acme")
    assert (key.created_at, key.expires_at) == (clock.now, clock.now + 90 * DAY * 1000)
    assert (key.state, key.revoked_at, key.last_used_at, key.replaces) == ("active", None, None, None)
    assert await store.api_keys.all() == [key]


async def test_a_key_may_be_valid_for_all_tenants_and_without_expiry(store: Store, clock: Clock) -> None:
    new = await store.api_keys.create("ops", SCOPES)
    assert (new.api_key.tenant, new.api_key.expires_at) == (None, None)
    clock.pass_seconds(1000 * DAY)
    assert await usable_key(store, new.key_text) == new.api_key


async def test_only_the_whole_key_opens(store: Store) -> None:
    new = await store.api_keys.create("web", ["read"])
    other = await store.api_keys.create("app", ["read"])
    head, secret = new.key_text[:13], new.key_text[13:]
    assert (await usable_key(store, new.key_text)) == new.api_key
    wrong = [
        "",
        "flk_",
        secret,
        head,
        new.key_text + "x",
        new.key_text[:-1],
        f"{new.key_text}\n",
        head + other.key_text[13:],
        head + "A" * 43,
        f"flk_zzzzzzzz_{secret}",
        f"flk_*_{secret}",
        "\ud800",
    ]
    assert [text for text in wrong if await usable_key(store, text)] == []


async def test_a_key_that_has_expired_opens_no_more(store: Store, clock: Clock) -> None:
    new = await store.api_keys.create("web", ["read"], expires_seconds=10)
    clock.pass_ms(9_999)
    assert await usable_key(store, new.key_text)
    clock.pass_ms(1)
    assert await usable_key(store, new.key_text) is None
    assert (await store.api_keys.get(new.api_key.id)).state == "expired"


async def test_a_revoked_key_opens_no_more_and_stays_revoked(store: Store, clock: Clock) -> None:
    new = await store.api_keys.create("web", ["read"])
    await store.api_keys.revoke(new.api_key.id)
    assert await usable_key(store, new.key_text) is None
    revoked_at = clock.now
    clock.pass_seconds(5)
    await store.api_keys.revoke(new.api_key.id)
    key = await store.api_keys.get(new.api_key.id)
    assert (key.state, key.revoked_at) == ("revoked", revoked_at)


async def test_a_rotated_key_has_the_same_rights_and_the_old_one_ends_after_the_overlap(
    store: Store, clock: Clock
) -> None:
    old = await store.api_keys.create("web", ["submit", "read"], tenant="acme", expires_seconds=90 * DAY)
    clock.pass_seconds(80 * DAY)
    new = await store.api_keys.rotate(old.api_key.id, 3600)
    made = new.api_key
    assert (made.name, made.scopes, made.tenant, made.replaces) == (
        "web",
        ("submit", "read"),
        "acme",
        old.api_key.id,
    )
    assert made.expires_at == clock.now + 90 * DAY * 1000
    clock.pass_seconds(3599)
    assert await usable_key(store, old.key_text) and await usable_key(store, new.key_text)
    clock.pass_seconds(1)
    assert await usable_key(store, old.key_text) is None
    assert await usable_key(store, new.key_text)


async def test_an_overlap_never_prolongs_a_key(store: Store, clock: Clock) -> None:
    old = await store.api_keys.create("web", ["read"], expires_seconds=60)
    again = await store.api_keys.rotate((await store.api_keys.rotate(old.api_key.id, 3600)).api_key.id, 0)
    clock.pass_seconds(59)
    assert await usable_key(store, old.key_text)
    assert again.api_key.expires_at == old.api_key.expires_at
    clock.pass_seconds(1)
    assert await usable_key(store, old.key_text) is None


async def test_a_key_that_has_ended_is_not_rotated(store: Store, clock: Clock) -> None:
    expired = await store.api_keys.create("web", ["read"], expires_seconds=1)
    revoked = await store.api_keys.create("web", ["read"])
    await store.api_keys.revoke(revoked.api_key.id)
    clock.pass_seconds(1)
    for ended in (expired, revoked):
        with pytest.raises(errors.KeyEnded):
            await store.api_keys.rotate(ended.api_key.id, 0)
    assert len(await store.api_keys.all()) == 2


async def test_two_concurrent_rotations_both_get_a_key(store: Store) -> None:
    old = await store.api_keys.create("web", ["read"])
    both = await asyncio.gather(*(store.api_keys.rotate(old.api_key.id, 60) for _ in range(2)))
    assert all([await usable_key(store, new.key_text) for new in (old, *both)])
    assert len({new.api_key.id for new in both}) == 2


async def test_a_text_that_is_not_a_key_is_unknown(store: Store, subtests: pytest.Subtests) -> None:
    for key_id in ["zzzzzzzz", "", "*", "a b", "\ud800", "k" * 300]:
        with subtests.test(key_id=key_id):
            for act in (store.api_keys.get, store.api_keys.revoke, lambda one: store.api_keys.rotate(one, 0)):
                with pytest.raises(errors.UnknownKey):
                    await act(key_id)


async def test_an_id_that_is_taken_is_drawn_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await store.api_keys.create("web", ["read"])
    drawn = iter([first.api_key.id, "aaaaaaaa", first.api_key.id, "bbbbbbbb"])
    monkeypatch.setattr(api_keys, "_new_id", lambda: next(drawn))
    assert (await store.api_keys.create("app", ["read"])).api_key.id == "aaaaaaaa"
    assert (await store.api_keys.rotate("aaaaaaaa", 0)).api_key.id == "bbbbbbbb"
    assert await usable_key(store, first.key_text) == first.api_key


async def test_keys_that_expired_long_ago_are_removed_only_when_a_new_one_is_created(
    store: Store, clock: Clock
) -> None:
    assert not await store.api_keys.any()
    old = [await store.api_keys.create("old", ["read"], expires_seconds=1) for _ in range(3)]
    await store.api_keys.revoke(old[0].api_key.id)
    clock.pass_seconds(200 * DAY)
    assert len(await store.api_keys.all()) == 3
    assert await store.api_keys.any()
    new = await store.api_keys.create("new", ["read"])
    assert await store.api_keys.all() == [new.api_key]
    assert [name for name in await key_names(store) if name.startswith("key:")] == [f"key:{new.api_key.id}"]
    assert await store.api_keys.any()


async def test_the_use_of_a_key_is_noted_once_a_minute(store: Store, clock: Clock) -> None:
    new = await store.api_keys.create("web", ["read"])
    key_id, first = new.api_key.id, clock.now
    await store.api_keys.note_use(key_id)
    clock.pass_seconds(59)
    await store.api_keys.note_use(key_id)
    assert (await store.api_keys.get(key_id)).last_used_at == first
    clock.pass_seconds(1)
    await store.api_keys.note_use(key_id)
    assert (await store.api_keys.get(key_id)).last_used_at == clock.now


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"scopes": ["read", "rule"]}, "scopes", "'rule' is unknown: use some of submit, read, cancel"),
        ({"scopes": []}, "scopes", "at least one"),
        ({"name": ""}, "name", "owner"),
        ({"name": "a\nb"}, "name", "printable"),
        ({"tenant": ""}, "tenant", "printable"),
        ({"expires_seconds": 0}, "expires_seconds", "number of seconds"),
        ({"expires_seconds": float("nan")}, "expires_seconds", "number of seconds"),
    ],
)
async def test_invalid_options_of_a_key_are_refused(
    options: dict[str, object], field: str, words: str, store: Store
) -> None:
    with pytest.raises(errors.InvalidInput, match=words) as refused:
        await store.api_keys.create(**{"name": "web", "scopes": ["read"], **options})  # type: ignore[arg-type]
    assert refused.value.field == field
    assert not await store.api_keys.any()


async def test_keys_are_kept_apart_by_namespace(store: Store, open_store: Callable[..., Store]) -> None:
    new = await store.api_keys.create("web", ["read"])
    other = open_store()
    await other.open()
    assert await usable_key(other, new.key_text) is None


async def test_the_secret_appears_only_in_the_answer(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    new = await store.api_keys.create("web", ["read"])
    rotated = await store.api_keys.rotate(new.api_key.id, 60)
    await usable_key(store, new.key_text)
    with pytest.raises(errors.UnknownKey) as unknown:
        await store.api_keys.revoke(new.key_text)
    seen = repr([await everything(store), new, rotated, store.api_keys, unknown.value]) + caplog.text
    for made in (new, rotated):
        assert made.key_text[13:] not in seen
    assert new.api_key.id in seen
