"""News for who waits a little at a time: none is lost, none comes twice, and nothing is left behind."""

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


async def given_up(news: Resumable[int]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await anext(news)


async def test_who_gave_up_comes_back_and_has_missed_nothing() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await given_up(news)
        await given_up(news)
        for number in range(3):
            source.news.put_nowait(number)
        source.news.put_nowait(None)
        assert [number async for number in news] == [0, 1, 2]


async def test_what_goes_wrong_is_told_to_who_waits() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await given_up(news)
        source.news.put_nowait(ValueError("no more"))
        with pytest.raises(ValueError, match="no more"):
            await anext(news)
        with pytest.raises(StopAsyncIteration):
            await anext(news)


async def test_it_is_closed_while_somebody_would_still_wait() -> None:
    source = Source()
    async with Resumable(source.items()) as news:
        await given_up(news)
    assert source.closed
