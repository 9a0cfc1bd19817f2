"""Problems that a gateway returned, as the errors that the store raises."""

from collections.abc import Mapping
from typing import Any

from fairlead import errors

#: Refusals by their code. Those that say more than a code are made below; what is not here is a plain error.
KINDS: dict[str, type[errors.FairleadError]] = {
    kind.code: kind
    for kind in (
        errors.IdempotencyConflict,
        errors.UnknownTask,
        errors.UnknownJob,
        errors.UnknownWorker,
        errors.UnknownLimit,
        errors.Fenced,
        errors.LimitFull,
        errors.AlreadyFinished,
        errors.NotReplayable,
        errors.StepOfJob,
        errors.NotResumable,
        errors.NotPurgeable,
        errors.StoreUnavailable,
        errors.StoreFull,
        errors.StoreUnsafe,
        errors.WrongNode,
        errors.StoreLost,
        errors.StoreFault,
        errors.NamespaceNotOpen,
    )
}
ASKS_FOR_KEY = (401, 403)
AWAY = (502, 503, 504)  # also of a proxy in front of it


def error_of(problem: Mapping[str, Any], retry_after: float | None = None) -> errors.FairleadError:
    """The error of a problem as RFC 9457 defines it, also of one item of a batch."""
    status, code, detail = problem.get("status"), str(problem.get("code", "")), problem.get("detail")
    words = detail if isinstance(detail, str) and detail else f"The gateway answered {status} {code}."
    if code == errors.UnknownPipeline.code:
        return errors.UnknownPipeline(words)
    fields = problem.get("errors")
    if fields and isinstance(fields, list):
        return errors.InvalidInput(str(fields[0]["field"]), str(fields[0]["message"]), code)
    if status in ASKS_FOR_KEY:
        return errors.NotAllowed(f"{words} A key is given with --key, FAIRLEAD_KEY or Fairlead(key=...).")
    if code in (errors.QueueFull.code, errors.TooManyTypes.code):
        full = errors.QueueFull if code == errors.QueueFull.code else errors.TooManyTypes
        return full(words, waiting=int(problem.get("waiting", 0)), retry_after=retry_after)
    if code == errors.RateLimited.code:
        return errors.RateLimited(words, retry_after=1.0 if retry_after is None else retry_after)
    if kind := KINDS.get(code):
        return kind(words)
    error = errors.StoreUnavailable(words) if status in AWAY else errors.FairleadError(words)
    error.code = code or error.code
    return error
