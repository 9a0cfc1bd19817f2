"""Object stores, through the package `obstore`, which is installed as an extra."""

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import from_url

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

RETRIES: "RetryConfig" = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}


def open_bucket(url: str, timeout: str = "60s") -> "ObjectStore":
    """`timeout`: of a whole request."""
    # Options given here take the place of all those in the environment, also of this one.
    allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1", "yes", "on")
    options: ClientConfig = {"connect_timeout": "3s", "timeout": timeout, "allow_http": allow_http}
    with as_os_errors():
        return from_url(url, client_options=options, retry_config=RETRIES)


def no_bucket(problem: FileNotFoundError) -> OSError:
    return OSError("there is no such bucket")


@contextlib.contextmanager
def as_os_errors(missing: Callable[[FileNotFoundError], OSError] = lambda it: it) -> Iterator[None]:
    """`missing`: what it means that something is not there."""
    try:
        yield
    except FileNotFoundError as problem:
        raise missing(problem) from None
    except BaseError as problem:
        raise OSError(str(problem).partition("\n")[0]) from problem
