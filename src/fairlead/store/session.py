"""What every part of the store works with: a connection, the settings, a clock, and how acts are run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redis.exceptions import RedisError

from fairlead.blobs.blobs import Blobs
from fairlead.settings import Settings
from fairlead.settings.folders import data_folder
from fairlead.settings.processes import DEFAULT_NAMESPACE
from fairlead.store.acceptance import Acceptance
from fairlead.store.archive import Archive
from fairlead.store.batches import in_parts
from fairlead.store.connection import Answer, Connection, pack
from fairlead.store.replies import expect_ok
from fairlead.store.server_errors import translated


class Session:
    def __init__(
        self, connection: Connection, settings: Settings, clock: Callable[[], str] = lambda: ""
    ) -> None:
        self.connection = connection
        self.archive: Archive | None = None  # where tasks and jobs are found that have left the store
        self.settings = settings
        self.acceptance = Acceptance(connection, waits=settings.is_ledger)
        self.clock = clock  # "" is the server's own time; tests give ms
        self.blobs = Blobs(
            settings.blobs,
            connection.keys.namespace,
            data_folder(settings.engine) / "blobs",
            epoch=lambda: connection.membership.epoch,
        )

    @property
    def ending(self) -> str:
        """Of its keys and tickets: a gateway of several namespaces knows by it where to look them up."""
        namespace = self.connection.keys.namespace
        return "" if namespace == DEFAULT_NAMESPACE else f".{namespace}"

    async def ask(self, act: str, *arguments: Any) -> Answer:
        """The answer of an act, also when it is a refusal."""
        return await self.connection.run(act, *arguments, self.clock())

    async def run(self, act: str, *arguments: Any) -> Answer:
        """The answer of an act; a refusal is raised as its error."""
        return expect_ok(await self.ask(act, *arguments))

    async def run_parts(
        self, items: Iterable[dict[str, Any]], call: Callable[[bytes], tuple[Any, ...]]
    ) -> list[Answer]:
        """The rows that answer all items, which are sent in as few acts as possible, in one round trip."""
        calls = [(*call(pack(part)), self.clock()) for part in in_parts(items)]
        answers, _ = await self.connection.run_together(*calls)
        return [row for answer in answers for row in expect_ok(answer)["rows"]]

    def instant(self, time: Sequence[bytes]) -> int:
        """By the clock of the acts; `time` is the server's."""
        given, (seconds, micros) = self.clock(), time
        return int(given) if given else int(seconds) * 1000 + int(micros) // 1000

    async def next_word(self, key: str, of: str, seconds: float) -> bytes | None:
        """The next word that an act pushes to this list; None if there is none within `seconds`."""
        try:
            return await self.connection.blocking.next(self.connection.keys.key(key, of), seconds)
        except (RedisError, OSError, TimeoutError) as problem:
            raise translated(problem) from problem


class Part:
    """A part of the store: what can be done with one kind of thing, in the session of the whole."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._connection = session.connection
