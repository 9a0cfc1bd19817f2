"""Problems (RFC 9457), and the health of a server."""

from typing import Literal

from msgspec import field

from fairlead.shapes.base import Answer
from fairlead.shapes.estimate import EstimateAnswer


class FieldProblem(Answer):
    field: str
    message: str


class NotReadyReason(Answer):
    code: str
    message: str


class ProblemAnswer(Answer):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem] = field(default_factory=list)
    request_id: str = ""  # of a 500: the log of the server has a line with it
    waiting: int = 0
    retry_after_seconds: float | None = None  # also of an item of a batch, which has no headers
    estimate: EstimateAnswer | None = None  # of the wait that was too long
    reasons: list[NotReadyReason] = field(default_factory=list)


class HealthAnswer(Answer):
    status: Literal["ok"]
    version: str


class WarningAnswer(Answer, omit_defaults=True):
    code: str
    message: str
    namespace: str | None = None  # where there are several


class ReadyAnswer(Answer, omit_defaults=True):
    status: Literal["ready"]
    not_ready: list[str] = field(default_factory=list)  # of several namespaces; only operators see them
    warnings: list[WarningAnswer] = field(default_factory=list)  # likewise
