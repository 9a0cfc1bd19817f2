"""The reasons why this server is not ready, each with what to do, as /readyz shows them."""

from fairlead.api.problems import NotReady
from fairlead.log.events import EventLog

log = EventLog("fairlead.api")


class Readiness:
    """The component that finds a reason sets it and clears it; several may exist at once."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def reasons(self) -> dict[str, str]:
        """Code -> what is wrong and what to do, oldest first."""
        return dict(self._reasons)

    def refuse(self, code: str, message: str) -> None:
        """Not ready because of this, until it is cleared. Logged when it is new."""
        if code not in self._reasons:
            log.error("not_ready", reason=code, problem=message)
        self._reasons[code] = message

    def clear(self, code: str) -> None:
        if self._reasons.pop(code, None) is not None:
            log.info("reason_cleared", reason=code, ready=not self._reasons)

    def note_background(self, work: str, failing: bool) -> None:
        """For work in the background that fails repeatedly (`keep_running`)."""
        code = f"{work}_failing"
        if failing:
            self.refuse(code, f"{work} fails again and again: see background_failed in the server's log")
        else:
            self.clear(code)

    def check(self) -> None:
        """Raises NotReady with all reasons."""
        if self._reasons:
            raise NotReady(self.reasons)
