"""Faults of Fairlead's own, met by a request: what the log says of them, and the id that joins both."""

import uuid_utils

from fairlead.api.problems import HttpProblem, Problem, problem_of
from fairlead.errors import StoreUnavailable
from fairlead.log.events import EventLog, Fact
from fairlead.log.tracebacks import traceback_of

log = EventLog("fairlead.api")


def noted(event: str, error: Exception, *, to_operator: bool = False, **facts: Fact) -> Problem:
    """The problem for the client. That of a fault has an id, by which the log says more."""
    problem = problem_of(error, to_operator=to_operator)
    if problem.status < 500 or isinstance(error, StoreUnavailable | HttpProblem):
        return problem
    request_id = str(uuid_utils.uuid7())
    log.error(event, request_id=request_id, traceback=traceback_of(error), **facts)
    return problem.with_request_id(request_id)
