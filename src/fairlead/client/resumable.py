"""Items of a generator that can be awaited with timeouts."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Generic, Self, TypeVar

from fairlead.background import cancel_all

T = TypeVar("T")


class Resumable(Generic[T]):
    """The items of a generator. A cancelled wait can be repeated; the generator itself would be closed.

    `async with Resumable(generator) as news:` closes it at the end.
    """

    def __init__(self, source: AsyncGenerator[T]) -> None:
        self._source = source
        self._coming: asyncio.Future[T] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._coming:
            await cancel_all(self._coming)
        await self._source.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._source))
        await asyncio.wait({self._coming})  # which does not cancel it when the caller is cancelled
        came, self._coming = self._coming, None
        return came.result()
