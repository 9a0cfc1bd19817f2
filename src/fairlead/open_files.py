"""How many files (connections are files) this process may have open: as many as the system allows it."""

import sys

from fairlead.log.events import EventLog

LOW = 4096  # a gateway with fewer cannot keep many polls and live updates waiting
MOST = 1_048_576  # what no process needs, some systems call unlimited, and others refuse

log = EventLog("fairlead")


def allowed_open_files() -> int:
    """By the soft limit."""
    if sys.platform == "win32":
        return LOW
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def raise_open_files() -> None:
    """The soft limit becomes the hard one; child processes inherit it. A low one is logged."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    allowed = allowed_open_files()
    if allowed < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as problem:  # the kernel may allow less than the limit says
            log.warning("open_files_not_raised", limit=allowed, wanted=wanted, problem=str(problem))
        else:
            log.info("open_files_raised", limit=wanted, before=allowed)
            allowed = wanted
    if allowed < LOW:
        log.warning(
            "open_files_low", limit=allowed, next_step=f"raise the hard limit to {LOW} or more (LimitNOFILE=)"
        )
