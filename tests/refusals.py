"""The errors that a gateway answers with, other than those about the request itself."""

from fairlead import errors

#: Slots without an engine are used by a program itself.
ELSEWHERE = (errors.SlotStoreUnavailable,)

REFUSALS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.FairleadError) and kind.http_status != 500
    if kind not in ELSEWHERE
]
