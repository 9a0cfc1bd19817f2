"""A job gateway for scarce compute: the public names."""

from fairlead.errors import (
    AlreadyFinished,
    EngineFailed,
    FairleadError,
    Fenced,
    IdempotencyConflict,
    InvalidInput,
    InvalidSettings,
    LimitFull,
    NotReplayable,
    SchemaTooNew,
    StoreFault,
    StoreUnavailable,
    UnknownLimit,
    UnknownTask,
    UnknownWorker,
    UnsuitableServer,
)

__version__ = "0.1.0"

__all__ = [
    "AlreadyFinished",
    "EngineFailed",
    "FairleadError",
    "Fenced",
    "IdempotencyConflict",
    "InvalidInput",
    "InvalidSettings",
    "LimitFull",
    "NotReplayable",
    "SchemaTooNew",
    "StoreFault",
    "StoreUnavailable",
    "UnknownLimit",
    "UnknownTask",
    "UnknownWorker",
    "UnsuitableServer",
    "__version__",
]
