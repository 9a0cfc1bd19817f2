"""The limit of open files, of this process and of others."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
WANTED = 1_048_576 if HARD == resource.RLIM_INFINITY else min(HARD, 1_048_576)

needs_room = pytest.mark.skipif(WANTED <= 1024, reason="the hard limit of this machine is too low to see it")


@contextmanager
def soft_limit(files: int) -> Iterator[None]:
    """Of every process that is started meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def limit_of(pid: int) -> int:
    """The soft one."""
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
