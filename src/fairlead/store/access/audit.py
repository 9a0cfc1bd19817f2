"""The audit: what was changed by hand, by whom and why, in a chain of hashes that an edit breaks.

Somebody who may write to the server can rebuild the whole chain: keep the last hash elsewhere to detect that.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from fairlead.checks import check_units, to_json
from fairlead.errors import StoreFault
from fairlead.log.tracebacks import readable
from fairlead.store.connection import Answer, text
from fairlead.store.replies import expect_ok
from fairlead.store.session import Session

MOST_KEPT = 10_000  # as the act trims it
PAGE = 500
MOST_LETTERS = 500

Row = tuple[str, str]  # an entry as JSON, and its hash
Rows = list[Row]
Sentences = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    seq: int
    at: int  # ms
    actor: str
    act: str
    subject: str
    before: Any
    after: Any
    reason: str
    previous: str  # the hash of the entry before
    hash: str = ""


Entries = list[AuditEntry]


class Audit:
    def __init__(self, session: Session) -> None:
        self._session = session

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

    async def list(self, count: int = 100) -> Entries:
        """The latest first; 10,000 are kept."""
        check_units("count", count)
        rows = await self._rows(count)
        try:
            return [_entry(row) for row in rows]
        except ValueError:
            raise StoreFault("An entry of the audit cannot be read: `fairlead doctor` says which.") from None

    async def verify(self) -> Sentences:
        """A sentence for each entry that was edited, added or removed; none if all is as it was written."""
        first = await self._written()
        rows = await self._rows(MOST_KEPT)
        return [*problems(rows[::-1], first, await self._written())]

    async def _append(self, previous: str, digest: str, entry: str) -> Answer | None:
        """None when it was appended."""
        answer = expect_ok(await self._session.ask("audit", previous, digest, entry), "behind")
        return answer if answer["answer"] == "behind" else None

    async def _written(self) -> int:
        """How many entries there ever were."""
        answer = await self._append("", "", "")
        return int(answer["seq"]) - 1 if answer else 0

    async def _rows(self, count: int) -> Rows:
        connection = self._session.connection
        rows: Rows = []
        latest = "+"
        while len(rows) < count:
            want = min(PAGE, count - len(rows))
            command = ("XREVRANGE", connection.keys.key("audit"), latest, "-", "COUNT", want)
            (page,) = await connection.read(command)
            read = (dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in page)
            rows += [(_text(fields, b"entry"), _text(fields, b"hash")) for fields in read]
            if len(page) < want:
                break
            latest = f"({text(page[-1][0])}"
        return rows


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
