"""Problems that a gateway returned, as the errors that the store raises."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from fairlead import errors
from fairlead.shapes.estimate import EstimateAnswer

#: Refusals by their code. Those that say more than a message are made below.
KINDS: dict[str, type[errors.FairleadError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, errors.FairleadError)
    and kind.http_status != errors.FairleadError.http_status
    and not issubclass(kind, errors.InvalidInput | errors.QueueFull | errors.WaitTooLong)
}
WAITS = {kind.code: kind for kind in (errors.WaitTooLong, errors.DeadlineUnlikely)}
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
    if retry_after is None:
        retry_after = problem.get("retry_after_seconds")
    if code in WAITS:
        return WAITS[code](words, retry_after=retry_after, **_estimate(problem))
    if code in (errors.QueueFull.code, errors.TooManyTypes.code):
        full = errors.QueueFull if code == errors.QueueFull.code else errors.TooManyTypes
        return full(words, waiting=int(problem.get("waiting", 0)), retry_after=retry_after)
    kind = KINDS.get(code) or (errors.StoreUnavailable if status in AWAY else errors.FairleadError)
    error = kind(words)
    error.code = code or error.code
    if retry_after is not None:
        error.retry_after = retry_after
    return error


def _estimate(problem: Mapping[str, Any]) -> dict[str, Any]:
    """As the error has it; a proxy may have left it out."""
    try:
        estimate = msgspec.convert(problem.get("estimate"), EstimateAnswer).to_value()
    except (msgspec.ValidationError, errors.InvalidInput):
        return {}
    return asdict(estimate)
