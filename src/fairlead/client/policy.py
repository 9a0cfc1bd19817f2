"""The policy of a gateway's namespace, as the store has it."""

from fairlead.client.transport import HttpTransport, path
from fairlead.model.policy import PolicyValue
from fairlead.shapes.settings import SettingsAnswer


class Policy:
    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def values(self) -> list[PolicyValue]:
        answer = await self._transport.get(SettingsAnswer, path("api", "v1", "settings"))
        return [one.to_value() for one in answer.settings]
