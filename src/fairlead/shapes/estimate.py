"""Estimates, in many answers."""

from fairlead.model.estimate import Estimate
from fairlead.shapes.base import Moment, Shape


class EstimateAnswer(Shape[Estimate]):
    """Seconds from `at`: half of such tasks have started by the first, nine of ten by the second."""

    p50_seconds: float
    p90_seconds: float
    at: Moment


def shown_estimate(estimate: Estimate | None) -> EstimateAnswer | None:
    return EstimateAnswer.from_value(estimate) if estimate else None
