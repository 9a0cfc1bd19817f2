"""A server is ready when no reason is left, and a problem shows all that are."""

import logging

import pytest

from fairlead.api.problems import NotReady, problem_of
from fairlead.api.readiness import Readiness


def test_without_a_reason_it_is_ready() -> None:
    Readiness().check()


def test_all_reasons_are_shown_until_each_is_cleared() -> None:
    readiness = Readiness()
    readiness.refuse("store_lost", "The data is gone: run a.")
    readiness.refuse("store_full", "Memory is full: run b.")
    with pytest.raises(NotReady) as refused:
        readiness.check()
    problem = problem_of(refused.value, to_operator=True)
    assert (problem.status, problem.body["code"]) == (503, "not_ready")
    assert problem.body["detail"] == "The data is gone: run a. Memory is full: run b."
    assert problem.body["reasons"] == [
        {"code": "store_lost", "message": "The data is gone: run a."},
        {"code": "store_full", "message": "Memory is full: run b."},
    ]
    readiness.clear("store_lost")
    assert readiness.reasons == {"store_full": "Memory is full: run b."}
    readiness.clear("store_full")
    readiness.clear("store_full")
    readiness.check()


def test_strangers_see_the_codes_of_the_reasons_and_nothing_of_what_they_say() -> None:
    problem = problem_of(NotReady({"store_lost": "/var/lib/fairlead is gone: run a."}))
    assert (problem.status, problem.body["code"]) == (503, "not_ready")
    (reason,) = problem.body["reasons"]
    assert reason["code"] == "store_lost" and "operator" in reason["message"]
    assert "/var/lib" not in str(problem.body)


def test_a_reason_is_logged_when_it_comes_and_when_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    readiness = Readiness()
    for _ in range(3):
        readiness.refuse("store_lost", "The data is gone.")
    readiness.clear("store_lost")
    readiness.clear("store_lost")
    assert [record.message for record in caplog.records] == [
        'not_ready reason=store_lost problem="The data is gone."',
        "reason_cleared reason=store_lost ready=True",
    ]
