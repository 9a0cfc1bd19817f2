"""Sends scripts to the server and turns what can go wrong on the way into Fairlead's errors."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Self, cast

import msgspec
from redis.asyncio import Redis
from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError

from fairlead.clock import monotonic
from fairlead.errors import FairleadError, NotReplicated, SchemaTooNew, StoreFault, StoreFull, StoreLost
from fairlead.log.events import EventLog
from fairlead.store.act_log import log_changes
from fairlead.store.address import ANSWER_WITHIN, options_of
from fairlead.store.blocking_pool import BlockingPool
from fairlead.store.keys import Keys
from fairlead.store.membership import Membership
from fairlead.store.multiplexer import Command, SharedConnection
from fairlead.store.replication import Replication
from fairlead.store.route import Route, route_to
from fairlead.store.scripts import LIBRARIES, SCHEMA, edition, function_of, library, script
from fairlead.store.server_errors import NOT_PRIMARY, error_code, is_temporary, node_of, translated
from fairlead.store.subscription import Subscriber
from fairlead.timeouts import LenientTimeout

log = EventLog("fairlead.store")

LOAD_AGAIN_SECONDS = 60.0  # after the server had no memory for the functions
READS_AT_ONCE = 64  # under way; the others wait here, where no act waits behind them
PAGES_AT_ONCE = 2  # pieces of pages beside them, which may be large

#: Acts that only read. They take turns with the other reads.
LOOKS = frozenset(
    {
        *("explain", "list_limits", "outputs", "promotions", "show_ages", "show_keys", "show_limits"),
        *("show_workers", "stats"),
    }
)


Argument = str | int | float | bytes
Answer = dict[str, Any]  # what an act replies: `answer` is its word, the header of the act names the rest

pack = msgspec.msgpack.Encoder().encode
unpack_answer = msgspec.msgpack.Decoder(Answer).decode
unpack_handed = msgspec.msgpack.Decoder(tuple[int, tuple[str, dict[str, Any]]]).decode


class Connection:
    """The scripts of one namespace on one server.

    Acts are sent as they come. Reads share the connection with them but take turns, so that a crowd of
    readers delays an act by a few reads at most. A read is waited for as long as the server answers others.
    """

    answer_within = ANSWER_WITHIN

    def __init__(
        self, route: Route, keys: Keys, call: str = "redis.call", *, replication: Replication | None = None
    ) -> None:
        self.route = route
        self._replication = replication
        confirm = replication.confirm if replication else None
        self.shared = SharedConnection(route.connect, confirm)
        self._turns = asyncio.Semaphore(READS_AT_ONCE)
        self._page_turns = asyncio.Semaphore(PAGES_AT_ONCE)
        self.subscriber = Subscriber(lambda pushed: self.route.connect(pushed))
        self.blocking = BlockingPool(lambda: self.route.connect(), self._unblock, confirm)
        self.keys = keys
        self.membership = Membership(keys.namespace)
        self._meta = keys.meta
        self._call = call
        self.observe: Callable[[str, float], None] = lambda act, seconds: None  # of each act that was run
        self._known: set[str] = set()  # acts this server has been seen to know
        # until then scripts are sent instead; a test that calls by another name always sends scripts
        self.functions_refused_until = 0.0 if call == "redis.call" else math.inf

    @classmethod
    def to(cls, url: str, namespace: str, replicas: int = 0) -> Self:
        """Nothing is sent before the first call. Changes are answered when `replicas` have them."""
        keys = Keys(namespace)
        route = route_to(url, keys.meta, identifies=replicas > 0)
        if not replicas:
            return cls(route, keys)
        key = keys.key("replicated")
        return cls(route, keys, replication=Replication(route.connect, key, replicas, route.is_settled))

    @property
    def replicas(self) -> int:
        """How many must have a change before it is answered."""
        return self._replication.replicas if self._replication else 0

    @property
    def client(self) -> Redis:
        """For everything but acts and reads."""
        return self.route.client

    async def found_client(self) -> Redis:
        """The same, for a caller that has made no call before."""
        if not self._known:
            await self.guard(self.route.find())
        return self.client

    @property
    def address(self) -> str:
        """Where the server is, without a password."""
        where = options_of(self.client)
        return str(where["path"]) if "path" in where else f"{where.get('host')}:{where.get('port')}"

    @property
    def _keeps_functions(self) -> bool:
        return monotonic() >= self.functions_refused_until

    async def run(self, act: str, *arguments: Argument) -> Answer:
        began = monotonic()
        try:
            return await self._run(act, arguments)
        finally:
            self.observe(act, monotonic() - began)

    async def _run(self, act: str, arguments: Sequence[Argument]) -> Answer:
        if act not in LOOKS:
            return self._learn(await self.guard(self._evaluate(act, arguments)))
        patience = self._patience()
        reply = self._in_turn(self._turns, self._evaluate(act, arguments, patience))
        return self._learn(await self._within(patience, reply), confirmed=False)

    async def read(self, *commands: Command, paged: bool = False, confirmed: bool = False) -> list[Any]:
        """The answers to commands that change nothing, in one round trip; raises what the server refused.

        `paged`: a part of something long, of which few are under way at a time. `confirmed`: replicas have
        what was read.
        """
        if not commands:
            return []
        patience, turns = self._patience(), self._page_turns if paged else self._turns
        reply = self._in_turn(turns, self.shared.call(*commands, patience=patience, confirmed=confirmed))
        return await self._accepted(await self._within(patience, reply))

    async def call(self, *command: Argument, confirmed: bool = False) -> Any:
        """The answer to one command that is atomic by itself; raises what the server refused."""
        (answer,) = await self._accepted([await self.attempt(*command, confirmed=confirmed)])
        return answer

    async def attempt(self, *command: Argument, confirmed: bool = False) -> Any:
        """As `call`, but a refusal is the answer."""
        (answer,) = await self.guard(self.shared.call(command, confirmed=confirmed))
        return answer

    async def _accepted(self, answers: list[Any]) -> list[Any]:
        for answer in answers:
            if isinstance(answer, RedisError):
                raise await self.refusal(answer) from answer
        return answers

    def _patience(self) -> LenientTimeout:
        return LenientTimeout(self.answer_within, lambda: self.shared.received_at())

    async def _in_turn(self, turns: asyncio.Semaphore, reply: Coroutine[Any, Any, Any]) -> Any:
        try:
            async with turns:
                return await reply
        finally:
            reply.close()  # if its turn never came

    async def run_together(self, *calls: Sequence[Argument]) -> tuple[list[Answer], bool]:
        """Several acts in one round trip, in order; each is atomic, all of them together are not.

        Also returns whether one was passed over at first and ran after those behind it.
        """
        answers, passed_over = await self.run_each(*calls)
        for answer in answers:
            if isinstance(answer, FairleadError):
                raise answer
        return cast(list[Answer], answers), passed_over

    async def run_each(self, *calls: Sequence[Argument]) -> tuple[list[Answer | FairleadError], bool]:
        """As `run_together`, but an act that the server refused is answered with its error."""
        if not calls:
            return [], False
        if not self._known.issuperset(str(act) for act, *_ in calls):
            # one the server does not know would be passed over, and run after those that were to follow it
            return [await self._run_or_refuse(str(act), arguments) for act, *arguments in calls], False
        commands = [self._command(str(act), arguments) for act, *arguments in calls]
        began = monotonic()
        answers = await self.guard(self.shared.call(*commands, confirmed=True))
        for act, *_ in calls:
            self.observe(str(act), monotonic() - began)
        passed_over = False
        for i, answer in enumerate(answers):
            if isinstance(answer, NoScriptError):  # it was forgotten just now: it did not run, send its text
                answers[i] = await self.run(str(calls[i][0]), *calls[i][1:])
                passed_over = True
            elif isinstance(answer, RedisError):
                answers[i] = await self.refusal(answer)
            else:
                answers[i] = self._learn_or_refuse(answer)
        return answers, passed_over

    def _learn(self, packed: bytes, *, confirmed: bool = True) -> Answer:
        """Raises StoreLost when the act was refused because the data is not what this process knows,
        and SchemaTooNew when a newer version has migrated it.

        What was not confirmed by replicas may be lost, and is nothing that the data has to have.
        """
        answer = unpack_answer(packed)
        if self._replication and not confirmed and answer["answer"] != "lost":
            answer["beat"] = 0
        log_changes(answer)
        if answer["answer"] == "too_new":
            raise schema_too_new(self.keys.namespace, answer["schema"])
        self.membership.hear(answer)
        return answer

    def _learn_or_refuse(self, packed: bytes) -> Answer | FairleadError:
        try:
            return self._learn(packed)
        except (StoreLost, SchemaTooNew) as problem:
            return problem

    async def _run_or_refuse(self, act: str, arguments: Sequence[Argument]) -> Answer | FairleadError:
        try:
            return await self.run(act, *arguments)
        except (StoreFull, StoreFault) as problem:
            return problem

    async def forget_old_functions(self) -> None:
        """Those of other versions. A version still in use sends its own again, so this must be rare."""
        kept = await self.attempt("FUNCTION", "LIST", "LIBRARYNAME", LIBRARIES + "*")
        if isinstance(kept, RedisError):  # it may not be allowed; then none are kept
            return
        for about in kept:
            if (name := text(about[b"library_name"])) != edition():
                await self.attempt("FUNCTION", "DELETE", name)

    async def guard(self, reply: Awaitable[Any], within: float | None = None) -> Any:
        return await self._within(LenientTimeout(self.answer_within if within is None else within), reply)

    async def _within(self, patience: LenientTimeout, reply: Awaitable[Any]) -> Any:
        try:
            with patience:
                return await reply
        except TimeoutError as problem:
            self.shared.replace_if_silent(patience.seconds)
            raise translated(problem) from problem
        except (RedisError, OSError) as problem:
            raise await self.refusal(problem) from problem
        except NotReplicated:
            await self._leave()
            raise

    async def refusal(self, problem: Exception) -> Exception:
        """The error for the caller; disconnects from a server that is no longer the primary."""
        if isinstance(problem, RedisError) and error_code(problem) in NOT_PRIMARY:
            if node := node_of(problem):
                self.route.suggest(node)
            await self._leave()
        return translated(problem, follows=self.route.finds)

    async def _leave(self) -> None:
        """The primary may be another server by now."""
        if self.shared.reconnect():
            await self.route.disconnect()

    async def _unblock(self, client_id: int) -> bool | None:
        """Ends the blocking command of a connection; False: there is none. None: this user may not do it."""
        try:
            ended = await self.attempt("CLIENT", "UNBLOCK", client_id)
        except FairleadError:  # the command ends by itself, soon
            return True
        return None if isinstance(ended, RedisError) else bool(ended)

    async def close(self) -> None:
        self.blocking.close()
        if self._replication:
            self._replication.close()
        self.shared.close()
        await self.route.close()

    async def move(self, route: Route) -> None:
        """Works on another server from now on; calls under way on the one before end with an error."""
        before, self.route = self.route, route
        shared, self.shared = self.shared, SharedConnection(route.connect)
        shared.close()
        await before.close()

    def _command(self, act: str, arguments: Sequence[Argument]) -> Command:
        given = (*self.membership.known, *arguments)
        if self._keeps_functions:
            return ("FCALL", function_of(act), 1, self._meta, *given)
        return ("EVALSHA", script(act, self._call)[1], 1, self._meta, *given)

    async def _evaluate(
        self, act: str, arguments: Sequence[Argument], patience: LenientTimeout | None = None
    ) -> Any:
        confirmed = act not in LOOKS
        (answer,) = await self.shared.call(
            self._command(act, arguments), patience=patience, confirmed=confirmed
        )
        if isinstance(answer, NoScriptError):  # a new server, or one that has lost its functions
            answer = await self._teach(act, arguments)
        if isinstance(answer, RedisError):
            raise answer
        self._known.add(act)
        return answer

    async def _teach(self, act: str, arguments: Sequence[Argument]) -> Any:
        if self._keeps_functions:
            # the first is refused when somebody else was faster: then the function is there
            loaded, answer = await self.shared.call(
                ("FUNCTION", "LOAD", library()), self._command(act, arguments), confirmed=act not in LOOKS
            )
            if not isinstance(answer, NoScriptError):
                return answer
            if isinstance(loaded, RedisError) and is_temporary(loaded):
                return loaded
            # memory is full, or we are not allowed to: scripts are sent meanwhile, which cost a little more
            log.warning("functions_not_kept", act=act, problem=str(loaded))
            is_full = isinstance(loaded, OutOfMemoryError)
            self.functions_refused_until = monotonic() + LOAD_AGAIN_SECONDS if is_full else math.inf
            self._known.clear()
        given = (*self.membership.known, *arguments)
        (answer,) = await self.shared.call(
            ("EVAL", script(act, self._call)[0], 1, self._meta, *given), confirmed=act not in LOOKS
        )
        return answer


def schema_too_new(namespace: str, found: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"Namespace {namespace!r} has schema {found}, this Fairlead knows {SCHEMA}: upgrade it."
    )


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
