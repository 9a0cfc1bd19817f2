"""Tickets that open a socket once, without a key: a web page cannot send a header when it opens one."""

import secrets
from dataclasses import asdict

import msgspec

from fairlead.model.key import Identity
from fairlead.settings.processes import MOST_NAMESPACE
from fairlead.store.access.api_keys import digest_of
from fairlead.store.session import Part

TICKET_SECONDS = 30
LONGEST_TICKET = 100 + MOST_NAMESPACE
PREFIX = "flt_"  # a session of a browser is kept beside tickets, and is none


class SocketTickets(Part):
    async def make(self, holder: Identity) -> str:
        """A ticket for 30 seconds; the store knows only its digest."""
        ticket = PREFIX + secrets.token_urlsafe(32) + self._session.ending
        content = msgspec.json.encode(asdict(holder))
        await self._session.run("make_ticket", digest_of(ticket), content, TICKET_SECONDS * 1000)
        return ticket

    async def take(self, ticket: str) -> Identity | None:
        """Its holder, once: the second caller with the same ticket gets None."""
        if not ticket.startswith(PREFIX) or len(ticket) > LONGEST_TICKET:
            return None
        content = (await self._session.run("take_ticket", digest_of(ticket), 0)).get("holder")
        return msgspec.json.decode(content, type=Identity) if content else None
