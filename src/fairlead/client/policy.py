"""The policy of a gateway's namespace, as the store has it."""

from fairlead.client.transport import Part, path
from fairlead.model.policy import PolicyValue
from fairlead.shapes.settings import SettingsAnswer


class Policy(Part):
    async def values(self) -> list[PolicyValue]:
        answer = await self._transport.get(SettingsAnswer, path("api", "v1", "settings"))
        return [one.to_value() for one in answer.settings]
