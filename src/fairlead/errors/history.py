"""Errors of the history and its database."""

from fairlead.errors.base import FairleadError


class HistoryUnavailable(FairleadError):
    """The history did not answer: the queue works without it; repeat the call when its database is back."""

    http_status, code = 503, "history_unavailable"
    retry_after = 2.0
    names_the_store = True


class NoHistory(FairleadError):
    """There is no history: set history.url (or DATABASE_URL), and history.enabled = true."""

    http_status, code = 404, "no_history"


class HistoryTooNew(FairleadError):
    """A newer Fairlead has written this history: upgrade this one."""

    code = "history_too_new"


class RecordedElsewhere(FairleadError):
    """Another process has recorded this: read how far the history goes, and continue there."""

    code = "recorded_elsewhere"


class RestoreRefused(FairleadError):
    """The namespace cannot be restored now."""

    code = "restore_refused"
