"""A service: an HTTP endpoint that does a step, under a limit of its own."""

from dataclasses import dataclass

from fairlead.settings import Settings
from fairlead.settings.pipelines import SERVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    name: str
    url: str
    limit: int
    timeout_seconds: float
    max_attempts: int

    @property
    def task_type(self) -> str:
        """Also the name of its limit."""
        return SERVICE + self.name


def services_of(settings: Settings) -> dict[str, Service]:
    """By name."""
    return {
        name: Service(
            name=name,
            url=written.url,
            limit=written.limit,
            timeout_seconds=written.timeout_seconds,
            max_attempts=written.max_attempts,
        )
        for name, written in settings.services.items()
    }
