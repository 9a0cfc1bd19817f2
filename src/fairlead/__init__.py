"""A job gateway for scarce compute: the public names."""

import importlib
from typing import TYPE_CHECKING, Any

from fairlead.errors import (
    AlreadyFinished,
    BlobStoreFull,
    BlobStoreUnavailable,
    BlobTooLarge,
    DeadlineUnlikely,
    EngineFailed,
    FairleadError,
    Fenced,
    IdempotencyConflict,
    InvalidInput,
    InvalidSettings,
    JobCancelled,
    JobFailed,
    KeyEnded,
    LeaseLost,
    LimitFull,
    NamespaceNotOpen,
    NotAllowed,
    NotPurgeable,
    NotReplayable,
    NotResumable,
    PermanentError,
    QueueFull,
    RateLimited,
    RetriableError,
    SchemaTooNew,
    SchemaTooOld,
    StoreFault,
    StoreFull,
    StoreLost,
    StoreUnavailable,
    StoreUnsafe,
    TaskCancelled,
    TaskFailed,
    UnknownBlob,
    UnknownJob,
    UnknownKey,
    UnknownLimit,
    UnknownNamespace,
    UnknownPipeline,
    UnknownTask,
    UnknownWorker,
    UnsuitableServer,
    WaitTooLong,
)

if TYPE_CHECKING:
    from fairlead.app.app import Fairlead
    from fairlead.app.function import TaskFunction
    from fairlead.app.handle import JobHandle, TaskHandle
    from fairlead.app.many import NotAllSubmitted
    from fairlead.model.blob import BlobRef
    from fairlead.pipeline.pipelines import Parallel
    from fairlead.worker.context import Context

__version__ = "0.1.0"

__all__ = [
    "AlreadyFinished",
    "BlobRef",
    "BlobStoreFull",
    "BlobStoreUnavailable",
    "BlobTooLarge",
    "Context",
    "DeadlineUnlikely",
    "EngineFailed",
    "Fairlead",
    "FairleadError",
    "Fenced",
    "IdempotencyConflict",
    "InvalidInput",
    "InvalidSettings",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "KeyEnded",
    "LeaseLost",
    "LimitFull",
    "NamespaceNotOpen",
    "NotAllSubmitted",
    "NotAllowed",
    "NotPurgeable",
    "NotReplayable",
    "NotResumable",
    "Parallel",
    "PermanentError",
    "QueueFull",
    "RateLimited",
    "RetriableError",
    "SchemaTooNew",
    "SchemaTooOld",
    "StoreFault",
    "StoreFull",
    "StoreLost",
    "StoreUnavailable",
    "StoreUnsafe",
    "TaskCancelled",
    "TaskFailed",
    "TaskFunction",
    "TaskHandle",
    "UnknownBlob",
    "UnknownJob",
    "UnknownKey",
    "UnknownLimit",
    "UnknownNamespace",
    "UnknownPipeline",
    "UnknownTask",
    "UnknownWorker",
    "UnsuitableServer",
    "WaitTooLong",
    "__version__",
]

# What needs the store and its client is imported when it is asked for: `fairlead --help` needs neither.
_LATER = {
    "BlobRef": "fairlead.model.blob",
    "Context": "fairlead.worker.context",
    "Fairlead": "fairlead.app.app",
    "JobHandle": "fairlead.app.handle",
    "NotAllSubmitted": "fairlead.app.many",
    "Parallel": "fairlead.pipeline.pipelines",
    "TaskFunction": "fairlead.app.function",
    "TaskHandle": "fairlead.app.handle",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
