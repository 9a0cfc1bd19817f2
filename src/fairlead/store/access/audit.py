"""The audit: what was changed by hand, by whom and why, in a chain of hashes that an edit breaks.

Somebody who may write to the server can rebuild the whole chain: keep the last hash elsewhere to detect that.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from fairlead.checks import check_units, to_json
from fairlead.errors import InvalidInput, StoreFault
from fairlead.log.tracebacks import readable
from fairlead.model.audit import AuditEntry, AuditPage
from fairlead.store.connection import Answer, text
from fairlead.store.replies import expect_ok
from fairlead.store.session import Part

MOST_KEPT = 10_000  # as the act trims it
AT_ONCE = 500  # entries that are read together
FEW_AT_ONCE = 20  # when their size counts
PAGE_BYTES = 1024 * 1024  # of a page, which ends early
MOST_LETTERS = 500

Row = tuple[str, str]  # an entry as JSON, and its hash
Rows = list[Row]

CURSOR = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")


class Audit(Part):
    async def record(
        self, actor: str, act: str, subject: str, before: Any, after: Any, reason: str = ""
    ) -> AuditEntry:
        """Appends an entry; `before` and `after` are JSON."""
        words = {"actor": actor, "act": act, "subject": subject, "reason": reason}
        said = {name: readable(word)[:MOST_LETTERS] for name, word in words.items()}
        to_json("before", before)
        to_json("after", after)
        previous = entry = digest = ""
        # The first answer names the entry to follow; a later one means that somebody else appended meanwhile.
        # Two entries that follow the same one would be a fork, and the chain would prove nothing.
        while answer := await self._append(previous, digest, entry):
            previous, seq, at = answer["last"], answer["seq"], answer["now"]
            facts = {"seq": seq, "at": at, "previous": previous, **said, "before": before, "after": after}
            entry = msgspec.json.encode(facts).decode()
            digest = _digest(entry)
        return _entry((entry, digest))

    async def page(self, count: int = 100, cursor: str = "") -> AuditPage:
        """The latest first, as many as fit into 1 MiB; continue with its `next_cursor`. 10,000 are kept."""
        check_units("count", count)
        _check_cursor(cursor)
        rows: Rows = []
        size, last = 0, ""
        async for place, row in self._rows(count + 1, cursor, FEW_AT_ONCE):
            if len(rows) == count or size >= PAGE_BYTES:
                return AuditPage(_entries(rows), last)
            rows.append(row)
            size, last = size + len(row[0]), place
        return AuditPage(_entries(rows))

    async def after(self, place: str) -> list[tuple[str, AuditEntry, str]]:
        """The next entries after this place in the stream, for the recorder: place, entry, and its JSON."""
        command = ("XRANGE", self._connection.keys.key("audit"), f"({place}", "+", "COUNT", AT_ONCE)
        (rows,) = await self._connection.read(command, paged=True)
        return [*_readable(rows)]

    async def verify(self) -> list[str]:
        """A sentence for each entry that was edited, added or removed; none if all is as it was written."""
        first = await self._written()
        rows = [row async for _, row in self._rows(MOST_KEPT)][::-1]
        written = await self._written()
        # 10,000 entries take longer than other requests may be made to wait
        return await asyncio.to_thread(lambda: [*problems(rows, first, written)])

    async def _append(self, previous: str, digest: str, entry: str) -> Answer | None:
        """None when it was appended."""
        answer = expect_ok(await self._session.ask("audit", previous, digest, entry), "behind")
        return answer if answer["answer"] == "behind" else None

    async def _written(self) -> int:
        """How many entries there ever were."""
        answer = await self._append("", "", "")
        return int(answer["seq"]) - 1 if answer else 0

    async def _rows(
        self, count: int, before: str = "", at_once: int | None = None
    ) -> AsyncIterator[tuple[str, Row]]:
        """Up to `count` with their places in the stream, the latest first, those before this place."""
        while count > 0:
            want = min(at_once or AT_ONCE, count)
            latest = f"({before}" if before else "+"
            command = ("XREVRANGE", self._connection.keys.key("audit"), latest, "-", "COUNT", want)
            (page,) = await self._connection.read(command)
            for place, fields in page:
                yield text(place), _row(fields)
            if len(page) < want:
                return
            count, before = count - want, text(page[-1][0])


def _readable(rows: Iterable[Any]) -> Iterator[tuple[str, AuditEntry, str]]:
    """An entry that was edited so that it cannot be read is left to `verify`."""
    for place, fields in rows:
        content, digest = _row(fields)
        with contextlib.suppress(ValueError):
            yield text(place), _entry((content, digest)), content


def _row(fields: Sequence[bytes]) -> Row:
    known = dict(zip(fields[::2], fields[1::2], strict=True))
    return _text(known, b"entry"), _text(known, b"hash")


def _check_cursor(cursor: str) -> None:
    if not cursor:
        return
    match = CURSOR.fullmatch(cursor)
    if not match or not 0 < max(map(int, match.groups())) < 1 << 64:
        raise InvalidInput("cursor", "not returned by a previous page; omit it to start over")


def _entries(rows: Rows) -> list[AuditEntry]:
    try:
        return [_entry(row) for row in rows]
    except ValueError:
        raise StoreFault("An entry of the audit cannot be read: `fairlead doctor` says which.") from None


def problems(rows: Rows, at_least: int, at_most: int) -> Iterator[str]:
    """What is wrong with these entries, the oldest first, if this many were written."""
    before: AuditEntry | None = None
    for row in rows:
        try:
            entry = _entry(row)
        except ValueError:
            yield f"the entry after {before.seq if before else 0} cannot be read"
            return
        if _digest(row[0]) != entry.hash:
            yield f"entry {entry.seq} was edited"
        elif before and (entry.previous, entry.seq) != (before.hash, before.seq + 1):
            yield f"entry {entry.seq} does not follow entry {before.seq}: one was edited, added or removed"
        elif not before and entry.seq > max(1, at_most - MOST_KEPT + 1):
            yield f"the entries before {entry.seq} were removed"
        before = entry
    if (last := before.seq if before else 0) < at_least:
        yield f"the entries after {last} were removed"


def _digest(entry: str) -> str:
    return hashlib.sha256(entry.encode(errors="surrogateescape")).hexdigest()


def _entry(row: Row) -> AuditEntry:
    return replace(msgspec.json.decode(row[0], type=AuditEntry), hash=row[1])


def _text(fields: Mapping[bytes, bytes], name: bytes) -> str:
    """Surrogates for bytes that are not UTF-8: an entry may have been edited by hand."""
    return fields.get(name, b"").decode(errors="surrogateescape")
