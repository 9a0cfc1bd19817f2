"""Items for a caller with short waits: none is lost, none comes twice, and nothing is left behind."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from fairlead.client.resumable import Resumable


class Source:
    def __init__(self) -> None:
        self.news: asyncio.Queue[int | Exception | None] = asyncio.Queue()
        self.closed = False

    async def items(self) -> AsyncGenerator[int]:
        try:
            while (one := await self.news.get()) is not None:
                if isinstance(one, Exception):
                    raise one
                yield one
        finally:
            self.closed = True


async def timed_out(news: Resumable[int]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await anext(news)


async def test_a_caller_that_timed_out_can_wait_again_and_misses_nothing() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await timed_out(news)
        await timed_out(news)
        for number in range(3):
            source.news.put_nowait(number)
        source.news.put_nowait(None)
        assert [number async for number in news] == [0, 1, 2]


async def test_an_error_is_raised_in_the_waiting_caller() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await timed_out(news)
        source.news.put_nowait(ValueError("no more"))
        with pytest.raises(ValueError, match="no more"):
            await anext(news)
        with pytest.raises(StopAsyncIteration):
            await anext(news)


async def test_it_can_be_closed_while_a_caller_would_still_wait() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await timed_out(news)
    assert source.closed
