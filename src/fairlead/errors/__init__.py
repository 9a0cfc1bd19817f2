"""Everything that can go wrong, as one tree.

The docstring is the message unless the error brings its own. `http_status` is that of a gateway's answer, or
500 for errors that no gateway answers with. It is not named `status`: a worker takes an error of a handler
that has one for the error of an HTTP client.
"""

from fairlead.errors.base import FairleadError as FairleadError
from fairlead.errors.history import HistoryTooNew as HistoryTooNew
from fairlead.errors.history import HistoryUnavailable as HistoryUnavailable
from fairlead.errors.history import NoHistory as NoHistory
from fairlead.errors.history import RecordedElsewhere as RecordedElsewhere
from fairlead.errors.history import RestoreRefused as RestoreRefused
from fairlead.errors.store import EngineFailed as EngineFailed
from fairlead.errors.store import NamespaceNotOpen as NamespaceNotOpen
from fairlead.errors.store import NotRecorded as NotRecorded
from fairlead.errors.store import NotReplicated as NotReplicated
from fairlead.errors.store import SchemaTooNew as SchemaTooNew
from fairlead.errors.store import SchemaTooOld as SchemaTooOld
from fairlead.errors.store import StoreFault as StoreFault
from fairlead.errors.store import StoreFull as StoreFull
from fairlead.errors.store import StoreLost as StoreLost
from fairlead.errors.store import StoreUnavailable as StoreUnavailable
from fairlead.errors.store import StoreUnsafe as StoreUnsafe
from fairlead.errors.store import UnknownNamespace as UnknownNamespace
from fairlead.errors.store import UnsuitableServer as UnsuitableServer
from fairlead.errors.store import WrongNode as WrongNode


class InvalidInput(FairleadError):
    """The value of a field cannot be accepted."""

    http_status, code = 422, "invalid_input"

    def __init__(self, field: str, message: str, code: str | None = None) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message
        if code:
            self.code = code


class InvalidSettings(FairleadError):
    """The configuration cannot be used."""

    code = "invalid_settings"


class IdempotencyConflict(FairleadError):
    """This idempotency key was used for another task: use a new key, or send the same task."""

    http_status, code = 409, "idempotency_conflict"


class UnknownTask(FairleadError):
    """There is no such task: check the id; finished tasks are forgotten after their retention."""

    http_status, code = 404, "unknown_task"


class UnknownJob(FairleadError):
    """There is no such job: check the id; finished jobs are forgotten after their retention."""

    http_status, code = 404, "unknown_job"


class UnknownPipeline(FairleadError):
    """There is no such pipeline: configure it under [pipelines], or declare it with `fl.pipeline`."""

    http_status, code = 422, "unknown_pipeline"


class UnknownWorker(FairleadError):
    """This worker is not registered or was given up as dead: register again."""

    http_status, code = 404, "unknown_worker"


class UnknownLimit(FairleadError):
    """There is no such limit: define it first."""

    http_status, code = 404, "unknown_limit"


class UnknownKey(FairleadError):
    """There is no such API key: `fairlead key list` shows them."""

    code = "unknown_key"


class UnknownBlob(FairleadError):
    """There is no such blob: it was never uploaded or has expired; upload the file again."""

    http_status, code = 404, "unknown_blob"


class BlobTooLarge(FairleadError):
    """The file is too large: split it, or raise blobs.max_bytes."""

    http_status, code = 413, "blob_too_large"


class BlobStoreUnavailable(FairleadError):
    """The folder or object store of the blobs cannot be used: try again; the operator checks [blobs]."""

    http_status, code = 503, "blob_store_unavailable"
    retry_after = 1.0
    names_the_store = True


class BlobStoreFull(BlobStoreUnavailable):
    """There is no room for more blobs: wait until some expire, or raise blobs.max_total_bytes."""

    http_status, code = 507, "blob_store_full"
    retry_after = 60.0
    names_the_store = False


class SlotStoreUnavailable(FairleadError):
    """The folder or object store of the slots cannot be used: try again; the operator checks its URL."""

    http_status, code = 503, "slot_store_unavailable"  # raised where it is used, never by a gateway
    retry_after = 1.0
    names_the_store = True


class KeyEnded(FairleadError):
    """This API key was revoked or has expired: make a new one with `fairlead key create`."""

    code = "key_ended"


class Fenced(FairleadError):
    """The lease is no longer yours: stop the work and drop its result."""

    http_status, code = 409, "fenced"


class LeaseLost(Fenced):
    """The lease ended while it was held, so what it protected was stopped: acquire it again."""

    http_status, code = 500, "lease_lost"  # raised where the lease is held, never by a gateway


class LimitFull(FairleadError):
    """The limit has no room now: wait, or come back later."""

    http_status, code = 409, "limit_full"


class NoCapacity(FairleadError):
    """No slot is free for an interactive task, which is never queued: try again later."""

    http_status, code = 409, "no_capacity"


class FramesFull(FairleadError):
    """The handler has not read the earlier frames yet: send this one again later."""

    http_status, code = 429, "frames_full"
    retry_after = 0.1


class NotInteractive(FairleadError):
    """The task exchanges no frames: submit it with the duration `interactive`."""

    http_status, code = 409, "not_interactive"


class SessionTaken(FairleadError):
    """Another client is connected to this interactive task, and only one may be: submit your own task."""

    http_status, code = 409, "session_taken"


class LimitInUse(FairleadError):
    """The limit is in use: it can be deleted when no task, lease or declaration needs it."""

    http_status, code = 409, "limit_in_use"


class QueueFull(FairleadError):
    """Too many tasks wait already: come back later."""

    http_status, code = 429, "queue_full"

    def __init__(self, message: str | None = None, *, waiting: int, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)  # None: nothing ended lately, so nobody can tell
        self.waiting = waiting


class TooManyTypes(QueueFull):
    """Tasks of too many types wait already: use fewer, or come back later."""

    code = "too_many_task_types"


class WaitTooLong(FairleadError):
    """The task would probably wait longer than its priority may: come back later."""

    http_status, code = 429, "wait_too_long"

    def __init__(
        self,
        message: str | None = None,
        *,
        p50_seconds: float = 0,
        p90_seconds: float = 0,
        at: int = 0,
        retry_after: float | None = None,
    ) -> None:
        """The estimate of the wait that the task would have had; `at` is in ms."""
        super().__init__(message, retry_after=retry_after)
        self.p50_seconds = p50_seconds
        self.p90_seconds = p90_seconds
        self.at = at


class DeadlineUnlikely(WaitTooLong):
    """The task would probably start after its deadline: give it more time, or a better priority."""

    http_status, code = 409, "deadline_unlikely"


class RateLimited(FairleadError):
    """This API key submits faster than it may: come back later, or ask for a key with a higher rate."""

    http_status, code = 429, "rate_limited"
    retry_after: float = 1.0


class AlreadyFinished(FairleadError):
    """The task has already ended: nothing was changed."""

    http_status, code = 409, "already_finished"


class NotReplayable(FairleadError):
    """Only failed and dead-lettered tasks can be replayed."""

    http_status, code = 409, "not_replayable"


class StepOfJob(FairleadError):
    """This task is a step of a job, which keeps it."""

    http_status, code = 409, "step_of_job"


class NotResumable(FairleadError):
    """Only a failed job can be resumed, and with `force` only if a step failed for good."""

    http_status, code = 409, "not_resumable"


class NotPurgeable(FairleadError):
    """Only failed and dead-lettered tasks can be purged: cancel a task that waits or runs instead."""

    http_status, code = 409, "not_purgeable"


class NotAllowed(FairleadError):
    """The gateway asks for a key that may do this: give it with --key, FAIRLEAD_KEY or Fairlead(key=...)."""

    code = "not_allowed"


class TaskFailed(FairleadError):
    """The task failed."""

    def __init__(
        self, task_id: str, code: str, message: str, retriable: bool = False, traceback: str | None = None
    ) -> None:
        super().__init__(f"Task {task_id} failed ({code}): {message}")
        self.task_id = task_id
        self.code = code
        self.reason = message
        self.retriable = retriable
        self.traceback = traceback  # of the handler, as text


class TaskCancelled(FairleadError):
    """The task was cancelled."""

    code = "cancelled"


class JobFailed(FairleadError):
    """The job failed."""

    def __init__(self, job_id: str, code: str, message: str, *, retryable: bool, step: int) -> None:
        hint = "; it can be resumed" if retryable else ""
        super().__init__(f"Job {job_id} failed at step {step} ({code}): {message}{hint}")
        self.job_id = job_id
        self.code = code
        self.reason = message
        self.retryable = retryable  # it can be resumed
        self.step = step


class JobCancelled(FairleadError):
    """The job was cancelled."""

    code = "cancelled"


class PermanentError(FairleadError):
    """Raise it in a handler (or a subclass with a `code`): the task fails for good, without another try."""

    code = "permanent_error"


class RetriableError(FairleadError):
    """Raise it in a handler (or a subclass with a `code`): the task is tried again after a pause."""

    code = "retriable_error"
