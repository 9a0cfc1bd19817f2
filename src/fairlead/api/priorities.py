"""The priority of a task: from what its client asks for, what the service knows about its user, and what its
key allows."""

from fairlead.api.priority_service import Terms
from fairlead.api.problems import PriorityNotAllowed
from fairlead.api.request import Request
from fairlead.model.priority import NAMED_PRIORITIES, Priority

USUAL = Priority.MEDIUM


def priority_of(
    request: Request, asked: str | None, found: Terms | None = None, *, trusted: bool = False
) -> tuple[str, bool]:
    """The priority, and whether the client chose it. `trusted`: a worker asks, not a client."""
    most = request.caller.max_priority
    service = request.gateway.store.settings.priority_service
    if trusted or service.trust_clients or request.gateway.priorities is None:
        if asked is not None:
            if at_most(most, asked) != asked:
                raise PriorityNotAllowed(
                    f"This key may use at most {most} priority, not {asked}: ask for less."
                )
            return asked, True
        return at_most(most, found.priority if found else USUAL.word), False
    if found:
        return at_most(most, found.priority), False
    # without a user the service cannot be asked: omitting the user must not be a way around it
    return at_most(most, at_most(service.fallback, asked or USUAL.word)), False


def at_most(most: str | None, priority: str) -> str:
    """The lower of both priorities; the smallest number is the highest priority."""
    if most is None:
        return priority
    return max(NAMED_PRIORITIES[most], NAMED_PRIORITIES[priority]).word
