"""What every error has."""

from collections.abc import Mapping
from types import MappingProxyType


class FairleadError(Exception):
    """Something went wrong in Fairlead."""

    http_status, code = 500, "error"
    retry_after: float | None = None  # seconds; None: unknown, or of no use
    facts: Mapping[str, str | int | None] = MappingProxyType({})  # for the operator's log
    names_the_store = False  # its message may: its address, its script, what it answered

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())
        if retry_after is not None:
            self.retry_after = retry_after

    @property
    def message(self) -> str:
        return str(self)

    @property
    def public_message(self) -> str:
        """For clients, which do not operate the server."""
        return (type(self).__doc__ or "").strip() if self.names_the_store else self.message
