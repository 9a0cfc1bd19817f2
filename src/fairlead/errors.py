"""What can go wrong, as one tree. The docstring is the message unless the error brings its own.

FairleadError
├── InvalidInput            a value that cannot be accepted; `field` names it
├── InvalidSettings         a configuration that cannot be used
├── IdempotencyConflict     same idempotency key, other task
├── UnknownTask             no such task (or its record has run out)
├── UnknownJob              no such job (or its record has run out)
├── UnknownPipeline         no such pipeline
├── UnknownWorker           not registered, or dead: register again
├── UnknownLimit            no such limit
├── UnknownKey              no such API key
├── KeyEnded                the API key was revoked or has expired
├── Fenced                  the lease is no longer the caller's
│   └── LeaseLost           ... and what it protected was stopped
├── LimitFull               no room in the limit now
├── QueueFull               too many tasks wait: no more are accepted
├── RateLimited             this API key submits faster than it may
├── AlreadyFinished         the task has ended, nothing to change
├── NotReplayable           only failed and dead-lettered tasks can be replayed
├── StepOfJob               a step is not replayed or purged by itself: resume its job
├── NotResumable            only jobs that failed through no fault of a step can be resumed
├── NotPurgeable            only failed and dead-lettered tasks can be purged
├── NotAllowed              the gateway asks for a key, or for one that may do this
├── TaskFailed              the task whose result was awaited ended without one
├── TaskCancelled           the task whose result was awaited was cancelled
├── JobFailed               the job whose context was awaited failed at a step
├── JobCancelled            the job whose context was awaited was cancelled
├── PermanentError          raised by handlers: do not try again
├── RetriableError          raised by handlers: try again later
├── StoreUnavailable        the server did not answer; the act may or may not have happened
│   ├── StoreFull           ... or has no memory left: no new work is accepted, running work continues
│   ├── StoreUnsafe         ... or may throw tasks away: nothing new is taken until that is put right
│   ├── WrongNode           ... or is a node of a cluster, and another one holds the namespace
│   └── StoreLost           ... or has lost data: nothing is done until an operator has decided
├── StoreFault              a script broke; its remaining writes are finished by the next act
│   └── NamespaceNotOpen    ... or found nothing: never opened, or the server lost its data
├── UnsuitableServer        the server cannot keep the promise (eviction, version)
├── SchemaTooNew            the namespace was written by a newer Fairlead
└── EngineFailed            the embedded server did not start
"""

from collections.abc import Mapping
from types import MappingProxyType


class FairleadError(Exception):
    """Something went wrong in Fairlead."""

    code = "error"
    facts: Mapping[str, str | int | None] = MappingProxyType({})  # for the operator's log
    names_the_store = False  # its message may: its address, its script, what it answered

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())

    @property
    def message(self) -> str:
        return str(self)

    @property
    def public_message(self) -> str:
        """For clients, which do not operate the server."""
        return (type(self).__doc__ or "").strip() if self.names_the_store else self.message


class InvalidInput(FairleadError):
    """The value of a field cannot be accepted."""

    code = "invalid_input"

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

    code = "idempotency_conflict"


class UnknownTask(FairleadError):
    """There is no such task: check the id; finished tasks are forgotten after their retention."""

    code = "unknown_task"


class UnknownJob(FairleadError):
    """There is no such job: check the id; finished jobs are forgotten after their retention."""

    code = "unknown_job"


class UnknownPipeline(FairleadError):
    """There is no such pipeline: configure it under [pipelines], or declare it with `fl.pipeline`."""

    code = "unknown_pipeline"


class UnknownWorker(FairleadError):
    """This worker is not registered or was given up as dead: register again."""

    code = "unknown_worker"


class UnknownLimit(FairleadError):
    """There is no such limit: define it first."""

    code = "unknown_limit"


class UnknownKey(FairleadError):
    """There is no such API key: `fairlead key list` shows them."""

    code = "unknown_key"


class KeyEnded(FairleadError):
    """This API key was revoked or has expired: make a new one with `fairlead key create`."""

    code = "key_ended"


class Fenced(FairleadError):
    """The lease is no longer yours: stop the work and drop its result."""

    code = "fenced"


class LeaseLost(Fenced):
    """The lease ended while it was held, so what it protected was stopped: acquire it again."""

    code = "lease_lost"


class LimitFull(FairleadError):
    """The limit has no room now: wait, or come back later."""

    code = "limit_full"


class QueueFull(FairleadError):
    """Too many tasks wait already: come back later."""

    code = "queue_full"

    def __init__(self, message: str | None = None, *, waiting: int, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.waiting = waiting
        self.retry_after = retry_after  # seconds; None: nothing ended lately, so nobody can tell


class TooManyTypes(QueueFull):
    """Tasks of too many types wait already: use fewer, or come back later."""

    code = "too_many_task_types"


class RateLimited(FairleadError):
    """This API key submits faster than it may: come back later, or ask for a key with a higher rate."""

    code = "rate_limited"

    def __init__(self, message: str | None = None, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class AlreadyFinished(FairleadError):
    """The task has already ended: nothing was changed."""

    code = "already_finished"


class NotReplayable(FairleadError):
    """Only failed and dead-lettered tasks can be replayed."""

    code = "not_replayable"


class StepOfJob(FairleadError):
    """This task is a step of a job: resume the job, or let it be."""

    code = "step_of_job"


class NotResumable(FairleadError):
    """Only a job that failed through no fault of its steps can be resumed."""

    code = "not_resumable"


class NotPurgeable(FairleadError):
    """Only failed and dead-lettered tasks can be purged: cancel a task that waits or runs instead."""

    code = "not_purgeable"


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

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds, at least


class StoreUnavailable(FairleadError):
    """The store did not answer: repeat the call with the same ids, it happens at most once."""

    code = "store_unavailable"
    names_the_store = True


class StoreFull(StoreUnavailable):
    """The store is out of memory and accepts no new work: let workers drain it, or raise maxmemory."""

    code = "store_full"


class StoreUnsafe(StoreUnavailable):
    """The store may throw tasks away, so no new work is accepted: set its maxmemory-policy to noeviction."""

    code = "store_unsafe"


class WrongNode(StoreUnavailable):
    """The store is one node of a cluster, and another one holds this namespace: connect to that node."""

    code = "wrong_node"


class StoreLost(StoreUnavailable):
    """The store has lost data: restore it, or accept what is left with `fairlead open`."""

    code = "store_lost"

    def __init__(self, message: str | None = None, standing: str = "") -> None:
        super().__init__(message)
        self.standing = standing  # the data compared with what is known: gone, rolled_back, ...


class StoreFault(FairleadError):
    """A script broke; what it had left to write is written by the next act. Run `fairlead doctor`."""

    code = "store_fault"
    names_the_store = True


class NamespaceNotOpen(StoreFault):
    """The namespace is not open, or the server lost its data: open it, then restore what is missing."""

    code = "namespace_not_open"


class UnsuitableServer(FairleadError):
    """This server cannot keep Fairlead's promise."""

    code = "unsuitable_server"


class SchemaTooNew(FairleadError):
    """This namespace was written by a newer Fairlead: upgrade this one."""

    code = "schema_too_new"


class EngineFailed(FairleadError):
    """The embedded server did not start."""

    code = "engine_failed"
