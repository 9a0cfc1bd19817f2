"""What only the estimator does: keep what it has learnt, and publish its forecast."""

from collections.abc import Mapping
from typing import Any

from fairlead.checks import check_ms, check_name
from fairlead.store.connection import pack
from fairlead.store.session import Part


class Estimates(Part):
    async def save_forecast(self, who: str, fields: Mapping[str, Any], ttl_ms: int) -> bool:
        """Replaces the forecast (`store/lua/lib/forecasts.lua`), unless another caretaker is elected."""
        check_name("who", who)
        check_ms("ttl_ms", ttl_ms)
        answer = await self._session.ask("save_forecast", who, ttl_ms, pack(dict(fields)))
        return bool(answer["answer"] == "ok")

    async def learn(self, who: str, fields: Mapping[str, str]) -> bool:
        """Keeps these fields for the estimator that follows; an empty one is deleted."""
        check_name("who", who)
        answer = await self._session.ask("learn", who, pack(dict(fields)))
        return bool(answer["answer"] == "ok")
