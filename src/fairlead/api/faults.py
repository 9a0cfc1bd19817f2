"""Internal errors of a request: logged with an id that the client gets, too."""

import uuid_utils

from fairlead.api.problems import HttpProblem, Problem, problem_of
from fairlead.errors import StoreUnavailable
from fairlead.log.events import EventLog, Fact
from fairlead.log.tracebacks import traceback_of

log = EventLog("fairlead.api")


def logged_problem(event: str, error: Exception, *, to_operator: bool = False, **facts: Fact) -> Problem:
    """The problem to answer with. An internal error is logged, and both have the same id."""
    problem = problem_of(error, to_operator=to_operator)
    if problem.status < 500 or isinstance(error, StoreUnavailable | HttpProblem):
        return problem
    request_id = str(uuid_utils.uuid7())
    log.error(event, request_id=request_id, traceback=traceback_of(error), **facts)
    return problem.with_request_id(request_id)
