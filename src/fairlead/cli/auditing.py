"""What is changed from the command line is left in the audit, under the name of who did it."""

import getpass
import os
from typing import Any

from fairlead.backend import Backend
from fairlead.store.store import Store


async def note(backend: Backend, act: str, subject: str, before: Any, after: Any) -> None:
    """A gateway does it itself, under the name of the key."""
    if isinstance(backend, Store):
        await backend.audit.record(f"{_user()} (command line)", act, subject, before, after)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container a user may have a number only
        return f"uid {os.getuid()}"
