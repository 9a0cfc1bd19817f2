"""The errors of a server, as each of our two parsers makes them, and what callers see instead."""

from typing import Any

import hiredis
import pytest
from redis._parsers.base import BaseParser
from redis.asyncio import Redis
from redis.exceptions import RedisError

from fairlead.api.problems import problem_of
from fairlead.errors import FairleadError, StoreFault, StoreFull, StoreUnavailable, WrongNode
from fairlead.store.multiplexer import _error
from fairlead.store.server_errors import is_temporary, node_of, translated

TEMPORARY = (
    "ASK 3999 127.0.0.1:6381",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN The cluster is down",
    "CLUSTERDOWN Hash slot not served",
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "ERR Attempted to access a non local key in a cluster node script: on @user_function:2138.",
    "ERR Script attempted to access a non local key in a cluster node script: f, on @user_function:123.",
    "ERR Script attempted to execute a write command while the cluster is down and readonly",
    "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
)
FAULTS = (
    "ERR user_function:12: attempt to index a nil value",
    "ERR BUSY is not a command",
    "BUSYKEY Target key name already exists.",
    "BUSYGROUP Consumer Group name already exists",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "NOPERM this user has no permissions to run the 'fcall' command",
)
OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'."


def on_the_line(words: str) -> Any:
    """Scripts and everything else on the shared connection."""
    reader = hiredis.Reader(replyError=_error)
    reader.feed(f"-{words}\r\n".encode())
    return reader.gets()


def by_the_client(words: str) -> Any:
    return BaseParser.parse_error(words)  # type: ignore[no-untyped-call]


def in_a_pipeline(words: str) -> Any:
    problem = by_the_client(words)
    Redis().pipeline().annotate_exception(problem, 1, ("HGETALL", "key"))
    return problem


@pytest.fixture(params=[on_the_line, by_the_client, in_a_pipeline], ids=lambda parse: parse.__name__)
def parse(request: pytest.FixtureRequest) -> Any:
    return request.param


def seen(problem: Any) -> FairleadError:
    assert isinstance(problem, RedisError)
    error = translated(problem)
    assert isinstance(error, FairleadError)
    return error


def test_a_node_that_does_not_hold_the_namespace_names_the_one_that_does(parse: Any) -> None:
    error = seen(parse("MOVED 3999 127.0.0.1:6381"))
    assert type(error) is WrongNode
    assert "(127.0.0.1:6381): set engine.url to redis+cluster://127.0.0.1:6381" in error.message
    problem = problem_of(error)
    assert (problem.status, problem.body["code"]) == (503, "wrong_node")
    assert "127.0.0.1" not in problem.body["detail"]
    assert is_temporary(parse("MOVED 3999 127.0.0.1:6381")), "slots that move become available again"
    assert node_of(parse("MOVED 3999 127.0.0.1:6381")) == ("127.0.0.1", 6381)
    assert node_of(parse("ASK 3999 127.0.0.1:6381")) is None, "only a part of the namespace is there"
    assert type(translated(parse("MOVED 3999 127.0.0.1:6381"), follows=True)) is StoreUnavailable


def test_a_server_that_refuses_for_now_is_unavailable(parse: Any, subtests: pytest.Subtests) -> None:
    for words in TEMPORARY:
        with subtests.test(words=words):
            error = seen(parse(words))
            assert type(error) is StoreUnavailable
            assert words.partition(" ")[2] in error.message, "the operator must see the message of the server"
            problem = problem_of(error)
            assert (problem.status, problem.body["code"]) == (503, "store_unavailable")
            assert int(problem.headers["retry-after"]) >= 1


def test_an_error_that_stays_is_a_fault(parse: Any, subtests: pytest.Subtests) -> None:
    for words in FAULTS:
        with subtests.test(words=words):
            assert type(seen(parse(words))) is StoreFault


def test_a_full_server_is_full(parse: Any) -> None:
    assert type(seen(parse(OUT_OF_MEMORY))) is StoreFull
