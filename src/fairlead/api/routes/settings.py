"""The policy that the namespace has in force."""

from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.shapes.settings import SettingAnswer, SettingsAnswer

routes = Routes("/api/v1/settings", scope="admin", for_all_tenants=True)


@routes.get()
async def show(request: Request) -> SettingsAnswer:
    """Get the policy in force with the source of each value."""
    values = await request.store.policy.values()
    return SettingsAnswer(settings=[SettingAnswer.from_value(value) for value in values])
