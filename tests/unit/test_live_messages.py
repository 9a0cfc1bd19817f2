"""An event or a state as the message that a client receives: every act and every state has one."""

from typing import Any

import pytest

from fairlead.live.messages import FROM_STATE, event_message, output_message, state_messages
from fairlead.model.event import Event
from fairlead.model.explanation import Blocker, Explanation
from fairlead.model.priority import Priority
from fairlead.model.reports import Output
from fairlead.model.states import TRANSITIONS, Act, State
from fairlead.model.task import Task, TaskError, TaskProgress

#: What an act says of itself, as the scripts write it.
DETAILS: dict[tuple[Act, State], dict[str, Any]] = {
    (Act.CLAIM, State.EXECUTING): {"worker": "w", "tier": "fast", "deadline": 5_000},
    (Act.EXTEND, State.EXECUTING): {"deadline": 5_000},
    (Act.SHORTEN, State.EXECUTING): {"tier": "fast", "reason": "needed", "deadline": 5_000, "worker": "w"},
    (Act.PROMOTE, State.QUEUED): {"from": "2n", "to": "1p"},
    (Act.FAIL, State.DELAYED): {"code": "busy", "retries": 2, "delay": 1_500},
    (Act.FAIL, State.QUEUED): {"code": "killed", "crashes": 1, "worker": "w"},
    (Act.EXPIRE, State.DELAYED): {"code": "timeout", "retries": 1, "delay": 500},
    (Act.EXPIRE, State.QUEUED): {"code": "worker_lost", "crashes": 2, "worker": "w"},
}


def event(act: str, after: State, detail: dict[str, Any], before: State | None = State.QUEUED) -> Event:
    return Event("t", act, before, after, 1_000, 7, detail, 3)


def content(message: dict[str, Any]) -> dict[str, Any]:
    """Without what every message has, which is checked."""
    assert (message.pop("seq"), message.pop("task_id")) == (3, "t")
    assert message.pop("at") == "1970-01-01T00:00:01.000Z"
    return message


def test_an_event_as_a_message(subtests: pytest.Subtests) -> None:
    for source, message in [
        (
            event("submit", State.DELAYED, {}, None),
            {"type": "QUEUED", "status": "delayed"},
        ),
        (
            event("claim", State.EXECUTING, DETAILS[Act.CLAIM, State.EXECUTING]),
            {
                "type": "STEP_START",
                "worker_id": "w",
                "fence": 7,
                "tier": "fast",
                "deadline": "1970-01-01T00:00:05.000Z",
            },
        ),
        (
            event("claim", State.EXECUTING, {"worker": "w"}),  # of an older version
            {"type": "STEP_START", "worker_id": "w", "fence": 7, "tier": None, "deadline": None},
        ),
        (
            event("promote", State.QUEUED, {"from": "2n", "to": "1p"}),
            {"type": "JOB_PROMOTED", "old": "low", "new": "medium"},
        ),
        (
            event("promote", State.QUEUED, {}, State.DELAYED),
            {"type": "QUEUED", "status": "queued"},
        ),
        (
            event("expire", State.DELAYED, {"code": "timeout", "retries": 1, "delay": 1_500}),
            {"type": "RETRY", "status": "delayed", "code": "timeout", "retries": 1, "delay_seconds": 1.5},
        ),
        (
            event("expire", State.QUEUED, {"code": "worker_lost", "crashes": 2}),
            {"type": "QUEUED", "status": "queued", "code": "worker_lost", "crashes": 2},
        ),
        (
            event("extend", State.EXECUTING, {"deadline": 5_000, "worker": "w"}),
            {"type": "EXTENDED", "deadline": "1970-01-01T00:00:05.000Z"},
        ),
        (
            event("shorten", State.EXECUTING, DETAILS[Act.SHORTEN, State.EXECUTING]),
            {
                "type": "DOWNGRADED",
                "tier": "fast",
                "reason": "needed",
                "deadline": "1970-01-01T00:00:05.000Z",
            },
        ),
        (
            event("progress", State.EXECUTING, {"fraction": None, "message": "hm"}),
            {"type": "PROGRESS", "fraction": None, "message": "hm"},
        ),
        (
            event("output", State.EXECUTING, {"seq": 1, "chunk": [1]}),
            {"type": "OUTPUT", "chunk": [1], "fence": 7},
        ),
        (event("replay", State.QUEUED, {}, State.FAILED), {"type": "QUEUED", "status": "queued"}),
    ]:
        with subtests.test(source=source, message=message):
            assert content(event_message(source)) == message


def test_every_transition_has_a_message() -> None:
    for (before, act), ends in TRANSITIONS.items():
        for after in ends:
            if act is not Act.RENEW:  # which is no news
                detail = DETAILS.get((act, after), {})
                assert event_message(event(act, after, detail, before))["type"]


def test_a_stored_chunk_is_sent_unchanged() -> None:
    kept = output_message("t", Output(1, 7, [1], 3, 1_000))
    assert kept == event_message(event("output", State.EXECUTING, {"seq": 1, "chunk": [1]}))


def task(status: State, **facts: Any) -> Task:
    known: dict[str, Any] = {
        "task_id": "t",
        "task_type": "echo",
        "priority": Priority.MEDIUM,
        "effective_priority": Priority.MEDIUM,
        "parameters": {},
        "created_at": 1_000,
        "timeout_ms": 1,
        "max_retries": 0,
        "seq": 3,
    }
    return Task(status=status, **known | facts)


def test_every_state_has_a_message() -> None:
    assert set(FROM_STATE) == set(State)
    for state in State:
        assert content(state_messages(task(state))[0])["type"] == FROM_STATE[state]


def test_a_result_says_whether_it_may_be_a_part() -> None:
    (message,) = state_messages(task(State.COMPLETED, result=[1], truncated=True))
    assert content(message) == {"type": "JOB_COMPLETE", "result": [1], "truncated": True}


@pytest.mark.parametrize("state", [State.FAILED, State.DEAD_LETTER])
def test_a_failure_says_why(state: State) -> None:
    error = TaskError(code="busy", message="come back", retriable=True)
    (message,) = state_messages(task(state, error=error))
    assert content(message) == {
        "type": "JOB_FAILED",
        "code": "busy",
        "message": "come back",
        "retryable": True,
    }


def test_a_task_cancelled_after_a_failure_is_cancelled() -> None:
    error = TaskError(code="busy", message="come back", retriable=True)
    assert content(state_messages(task(State.CANCELLED, error=error))[0]) == {"type": "CANCELLED"}


def test_a_state_may_be_more_than_one_message() -> None:
    progress = TaskProgress(fraction=0.5, message="half")
    run = {"assigned_worker_id": "w", "fence": 7, "tier": "slow", "deadline": 5_000}
    started, source = state_messages(task(State.EXECUTING, progress=progress, **run))
    assert content(started) == {
        "type": "STEP_START",
        "worker_id": "w",
        "fence": 7,
        "tier": "slow",
        "deadline": "1970-01-01T00:00:05.000Z",
    }
    assert content(source) == {"type": "PROGRESS", "fraction": 0.5, "message": "half"}
    blocker = Blocker("gpu", 1, 2, 2, paused=False)
    explanation = Explanation("t", State.QUEUED, Priority.HIGH, position=4, blocked_by=(blocker,))
    queued, waiting = state_messages(task(State.QUEUED), explanation)
    assert content(queued) == {
        "type": "QUEUED",
        "status": "queued",
        "run_at": None,
        "queue_position": 4,
        "effective_priority": "high",
    }
    assert content(waiting)["limits"][0]["limit"] == "gpu"


def test_a_task_that_has_moved_on_has_no_place_in_the_queue() -> None:
    gone = Explanation("t", State.EXECUTING)
    assert content(event_message(event("release", State.QUEUED, {}), gone)) == {
        "type": "QUEUED",
        "status": "queued",
    }
