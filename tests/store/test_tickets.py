"""Tickets: each is valid once, for a short time, and cannot be read in the store."""

import asyncio

from fairlead.model.key import Identity
from fairlead.store.access.socket_tickets import TICKET_SECONDS
from fairlead.store.store import Store
from tests.store.namespace import everything, raw

ANN = Identity("abcd1234", "ann", ("read", "submit"), "acme", True)


async def test_a_ticket_returns_the_identity_it_was_made_for(live_store: Store) -> None:
    ticket = await live_store.tickets.make(ANN)
    assert await live_store.tickets.take(ticket) == ANN
    assert await live_store.tickets.take(ticket) is None


async def test_one_without_a_key(live_store: Store) -> None:
    nobody = Identity(None, "anybody", ())
    assert await live_store.tickets.take(await live_store.tickets.make(nobody)) == nobody


async def test_one_of_many_concurrent_clients_gets_it(live_store: Store) -> None:
    ticket = await live_store.tickets.make(ANN)
    taken = await asyncio.gather(*(live_store.tickets.take(ticket) for _ in range(20)))
    assert sum(holder is not None for holder in taken) == 1


async def test_a_text_that_is_not_a_ticket_is_refused(live_store: Store) -> None:
    for nonsense in ("", "x", "flt_" + "x" * 43, "x" * 10_000, "\ud800", "{a}*\n"):
        assert await live_store.tickets.take(nonsense) is None


async def test_it_ends_by_itself_and_its_text_is_nowhere(live_store: Store) -> None:
    ticket = await live_store.tickets.make(ANN)
    content = await everything(live_store)
    (name,) = [name for name in content if name.startswith("ticket:")]
    assert content[name][1], "it runs out"
    assert 0 < await raw(live_store).ttl(live_store.connection.keys.prefix + name) <= TICKET_SECONDS
    assert ticket[4:] not in repr(content)
