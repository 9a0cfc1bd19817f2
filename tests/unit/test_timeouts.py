"""A timeout that does not count the time in which the process could not read."""

import asyncio
import socket
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
import uvloop

from fairlead.clock import monotonic
from fairlead.timeouts import LenientTimeout

LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
SECONDS = 0.1


@LOOPS
def test_an_answer_that_was_unread_while_the_process_hung_is_not_lost(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def ask() -> bytes:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            loop = asyncio.get_running_loop()

            def hang() -> None:
                theirs.send(b"answer")
                time.sleep(3 * SECONDS)

            loop.call_soon(hang)
            try:
                with LenientTimeout(SECONDS):
                    return await reader.readexactly(6)
            finally:
                writer.close()
                await writer.wait_closed()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ask()) == b"answer"


@LOOPS
def test_without_an_answer_it_times_out(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def wait() -> None:
        with LenientTimeout(SECONDS):
            await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=new_loop) as runner, pytest.raises(TimeoutError):
        runner.run(wait())


async def test_a_block_that_ends_in_time_is_not_affected_later() -> None:
    with LenientTimeout(SECONDS):
        pass
    await asyncio.sleep(2 * SECONDS)


async def test_an_exception_inside_is_raised_unchanged() -> None:
    with pytest.raises(LookupError), LenientTimeout(SECONDS):
        raise LookupError


async def test_a_cancellation_by_another_caller_is_kept() -> None:
    async def wait() -> None:
        with LenientTimeout(SECONDS):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_timeout_leaves_no_cancellation_behind() -> None:
    with pytest.raises(TimeoutError), LenientTimeout(SECONDS):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task and task.cancelling() == 0
    await asyncio.sleep(0)


async def test_the_time_starts_again_whenever_the_other_side_sends() -> None:
    looks: list[float] = []
    began = monotonic()

    def received_at() -> float:
        """Three times just now, and then never again."""
        looks.append(monotonic())
        return looks[-1] if len(looks) <= 3 else began

    with pytest.raises(TimeoutError), LenientTimeout(SECONDS, received_at):
        await asyncio.Event().wait()
    assert len(looks) == 4
    assert all(later - earlier >= SECONDS for earlier, later in pairwise(looks))
