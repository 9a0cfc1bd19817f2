"""Log lines of the worker: an event, then its facts."""

import logging
import sys


def set_up_logging(level: int = logging.INFO) -> None:
    """For a process of Fairlead's own; a program that uses Fairlead sets up its logging itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
        root.setLevel(level)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log every URL, with what is in it
