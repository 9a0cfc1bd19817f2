"""What a namespace keeps for its whole life (limits, declarations, API keys), copied beside its tasks."""

import msgspec

from fairlead.history.opening import History
from fairlead.history.rows import pack, unpack
from fairlead.store.definitions import Definitions, read_definitions
from fairlead.store.store import Store

KINDS = ("limits", "keys", "hashes", "sets")
SAVE = (
    "INSERT INTO definitions (namespace, kind, name, content) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (namespace, kind, name) DO UPDATE SET content = excluded.content"
)
FORGET = "DELETE FROM definitions WHERE namespace = ? AND kind = ? AND name = ?"
ALL = "SELECT kind, name, content FROM definitions WHERE namespace = ? ORDER BY kind, name"

read_scores = msgspec.msgpack.Decoder(dict[str, float]).decode


class DefinitionsCopy:
    """Writes what has changed since it last looked."""

    def __init__(self, store: Store, history: History) -> None:
        self._store, self._history = store, history
        self._written: dict[tuple[str, str], bytes] | None = None  # None: what is there was not read yet

    async def run_once(self) -> int:
        """Returns how many definitions it has written or removed."""
        found = _packed(await read_definitions(self._store))
        await self._store.epochs.check()  # what was read is of the namespace that is known
        before = self._written if self._written is not None else await self._stored()
        number = await self._history.number()
        changed = [(number, *of, content) for of, content in found.items() if before.get(of) != content]
        gone = [(number, *of) for of in before.keys() - found.keys()]
        if changed or gone:
            async with self._history.database.transaction() as transaction:
                await transaction.run_many(SAVE, changed)
                await transaction.run_many(FORGET, gone)
        self._written = found
        return len(changed) + len(gone)

    async def _stored(self) -> dict[tuple[str, str], bytes]:
        rows = await self._history.database.read(ALL, await self._history.number())
        return {(kind, name): bytes(content) for kind, name, content in rows}


async def definitions_of(history: History) -> Definitions:
    found = Definitions()
    for kind, name, content in await history.database.read(ALL, await history.number()):
        getattr(found, kind)[name] = read_scores(content) if kind == "sets" else unpack(content)
    return found


def _packed(found: Definitions) -> dict[tuple[str, str], bytes]:
    return {
        (kind, name): pack(content if kind == "sets" else dict(sorted(content.items())))
        for kind in KINDS
        for name, content in getattr(found, kind).items()
    }
