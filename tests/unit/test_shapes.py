"""How values look as JSON: the names and shapes that clients rely on."""

from collections import Counter
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import InvalidInput
from fairlead.model.estimate import EstimateQuality
from fairlead.model.explanation import Blocker, Explanation
from fairlead.model.limit import Limit, Slot
from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.model.stats import Depth, Stats
from fairlead.model.task import Task, TaskError
from fairlead.model.worker import WorkerStats
from fairlead.settings import Rate
from fairlead.settings.rates import PERIODS, parse_rate, rate_text
from fairlead.shapes import base, declaration, job, key, limit, live, problem, stats, task, worker
from fairlead.shapes.base import Shape
from fairlead.times import read_time, time_text

NOON = 1_769_860_800_007  # ms
NOON_TEXT = "2026-01-31T12:00:00.007Z"

TASK = Task(
    task_id="01890000-0000-7000-8000-000000000000",
    task_type="draw",
    status=State.FAILED,
    priority=Priority.LOW,
    effective_priority=Priority.MEDIUM,
    parameters={"size": 1},
    created_at=NOON,
    timeout_ms=2_500,
    max_retries=3,
    required_capabilities=("cuda",),
    limits={"gpu": 1},
    retry_count=1,
    crash_count=1,
    error=TaskError(code="no_ink", message="all used up", retriable=False),
)
CONTRACT = {
    *("task_id", "task_type", "parameters", "priority", "user_id", "required_capabilities", "limits"),
    *("timeout_seconds", "max_retries", "run_at", "idempotency_key", "trace_id"),
    *("effective_priority", "status", "retry_count", "crash_count", "assigned_worker_id"),
    *("created_at", "started_at", "completed_at"),
    *("fence", "result", "error", "job_id", "queue_position"),
}
BLOCKER = Blocker("gpu", 1, 2, 2, False, NOON)
STUDIO = WorkerStats("a", "active", 4, 3, NOON, 1, ("draw",), ("cuda",), "studio", "1.0")
MODULES = (base, declaration, job, key, limit, live, problem, stats, task, worker)
SHAPES = sorted(
    {
        one
        for module in MODULES
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Shape)
    }
    - {Shape},
    key=lambda shape: shape.__name__,
)


def json_of(shape: type[Shape[Any]], value: object) -> dict[str, Any]:
    return cast(dict[str, Any], msgspec.to_builtins(shape.from_value(value)))


GPU = Limit("gpu", "slots", 2, 1, 3, 1, False, None, None, ())


def test_times_are_rfc_3339_in_utc_with_milliseconds() -> None:
    assert (time_text(NOON), time_text(0), time_text(None)) == (NOON_TEXT, "1970-01-01T00:00:00.000Z", None)


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_a_time_is_read_as_it_was_shown(ms: int) -> None:
    assert read_time("run_at", str(time_text(ms))) == ms


@pytest.mark.parametrize("text", ["2026-01-31T13:00:00.007+01:00", "2026-01-31 12:00:00.007Z"])
def test_a_time_is_read_with_its_offset(text: str) -> None:
    assert read_time("run_at", text) == NOON


def test_an_invalid_time_is_refused_with_an_example(subtests: pytest.Subtests) -> None:
    for text in ["", "now", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", "1769860800"]:
        with subtests.test(text=text):
            with pytest.raises(
                InvalidInput, match="with its offset, such as 2026-01-31T12:00:00Z"
            ) as refused:
                read_time("run_at", text)
            assert refused.value.field == "run_at"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_field_of_a_shape_has_its_attribute(shape: type[Shape[Any]]) -> None:
    with pytest.raises(AttributeError):  # and not a TypeError, which would name what is missing
        shape.from_value(None)


def test_a_field_without_an_attribute_is_noticed() -> None:
    class Wrong(Shape[Depth]):
        depht: int

    with pytest.raises(TypeError, match="Depth has no depht for the JSON of Wrong"):
        Wrong.from_value(Depth(1, 0.0))


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (task.TaskAnswer, TASK),
        (limit.LimitAnswer, GPU),
        (limit.LimitAnswer, Limit("api", "rate", 7, 0, 0, 7, False, 1_000_000, "", ())),
        (
            worker.WorkerAnswer,
            WorkerStats("a", "active", 4, 3, NOON, 1, ("draw",), ("cuda",), "studio", "1.0"),
        ),
        (
            task.ExplainAnswer,
            Explanation(
                "t",
                State.QUEUED,
                Priority.LOW,
                position=2,
                blocked_by=(Blocker("gpu", 1, 2, 2, False, NOON),),
            ),
        ),
        (stats.Queue, Depth(2, 1.5)),
    ],
)
def test_a_value_is_read_as_it_was_written(shape: type[Shape[Any]], value: object) -> None:
    sent = msgspec.json.encode(shape.from_value(value))
    assert msgspec.json.decode(sent, type=shape).to_value() == value


def test_a_task_has_every_field_of_the_contract() -> None:
    view = json_of(task.TaskAnswer, TASK)
    assert view.keys() >= CONTRACT
    assert (view["status"], view["priority"], view["effective_priority"]) == ("failed", "low", "medium")
    assert (view["created_at"], view["started_at"]) == (NOON_TEXT, None)
    assert (view["timeout_seconds"], view["attempt"]) == (2.5, 3)
    assert view["error"] == {
        "code": "no_ink",
        "message": "all used up",
        "retriable": False,
        "traceback": None,
    }
    assert msgspec.json.decode(msgspec.json.encode(view)) == view, "nothing but JSON"


def test_a_limit_of_slots_has_no_rate() -> None:
    view = json_of(limit.LimitAnswer, GPU)
    assert view.items() >= {"name": "gpu", "kind": "slots", "limit": 2, "active": 1, "waiting": 3}.items()
    assert "rate" not in view


def test_a_rate_is_shown_with_its_burst() -> None:
    view = json_of(limit.LimitAnswer, Limit("api", "rate", 7, 0, 0, 7, False, 1_000_000, None, ()))
    assert (view["kind"], view["rate"], view["burst"]) == ("rate", "1/s", 7)


@given(st.integers(min_value=1, max_value=100_000), st.sampled_from(sorted(PERIODS)))
def test_the_rate_that_is_shown_is_the_rate_that_was_set(count: int, unit: str) -> None:
    _, period = parse_rate(f"{count}/{unit}")
    interval = Rate(count=count, period_seconds=period, burst=1).interval_us
    shown_count, shown_period = parse_rate(rate_text(interval))
    assert Rate(count=shown_count, period_seconds=shown_period, burst=1).interval_us == interval


def test_a_rate_of_no_common_unit_is_shown_by_its_interval() -> None:
    assert rate_text(7_000_001) == "1 per 7 s"


def test_slots_list_their_holders() -> None:
    slots = (Slot("t1", 2, True, "w", NOON), Slot("l1", 1, False, tenant="acme"))
    view = json_of(limit.LimitAndSlots, Limit("gpu", "slots", 3, 3, 0, 0, False, None, None, slots))
    assert view["group"] == "gpu"
    assert view["slots"] == [
        {"slot_id": "t1", "task_id": "t1", "worker_id": "w", "expires_at": NOON_TEXT, "units": 2}
        | {"tenant": None},
        {"slot_id": "l1", "task_id": None, "worker_id": None, "expires_at": None, "units": 1}
        | {"tenant": "acme"},
    ]


def test_stats_are_those_of_the_queue_route() -> None:
    workers = [WorkerStats("a", "active", 4, 3, NOON), WorkerStats("b", "dead", 4, 0, 0)]
    queues = {priority.word: Depth(0, 0.0) for priority in Priority} | {"low": Depth(2, 1.5)}
    ended = Counter({"completed": 5, "failed": 1, "dead_letter": 2, "cancelled": 1})
    fitted = EstimateQuality(0.9, 1.5, 40)
    assert json_of(stats.StatsAnswer, Stats(queues, workers, 6, ended, 0, estimates=fitted)) == {
        "queues": {
            "high": {"depth": 0, "oldest_age_seconds": 0.0},
            "medium": {"depth": 0, "oldest_age_seconds": 0.0},
            "low": {"depth": 2, "oldest_age_seconds": 1.5},
        },
        "delayed": 6,
        "workers": {"active": 1, "draining": 0, "dead": 1, "total_capacity": 4, "used_capacity": 3},
        "throughput": {"completed_last_minute": 5, "failed_last_minute": 3, "cancelled_last_minute": 1},
        "estimates": {"coverage_p90": 0.9, "median_error_seconds": 1.5, "count": 40},
        "lost_events": 0,
        "history_lag_seconds": None,
        "unrecorded_events": 0,
    }


def test_a_worker_is_shown_with_its_load() -> None:
    assert json_of(worker.WorkerAnswer, STUDIO) == {
        "worker_id": "a",
        "name": "studio",
        "status": "active",
        "capacity": 4,
        "reserve": 1,
        "current_load": 3,
        "capabilities": ["cuda"],
        "task_types": ["draw"],
        "version": "1.0",
        "seen_at": NOON_TEXT,
    }
    assert json_of(worker.WorkerAnswer, WorkerStats("a", "active", 4, 3, NOON))["task_types"] is None, "any"


def test_an_explanation_has_facts_and_a_sentence() -> None:
    view = json_of(
        task.ExplainAnswer,
        Explanation(
            "t1",
            State.QUEUED,
            effective_priority=Priority.LOW,
            position=2,
            ahead={"high": 3},
            blocked_by=(Blocker("gpu", 1, 2, 2, False, NOON),),
        ),
    )
    assert (view["status"], view["effective_priority"]) == ("queued", "low")
    assert (view["queue_position"], view["position_in_priority"], view["ahead_by_priority"]) == (
        5,
        2,
        {"high": 3},
    )
    assert view["blocked_by"] == [
        {"limit": "gpu", "needs": 1, "used": 2, "of": 2, "paused": False, "free_at": NOON_TEXT}
        | {"next_free_seconds": None, "by_deadline": False, "tenant": None, "is_rate": False, "holders": []}
    ]
    assert view["sentence"] == "It waits for a unit of gpu (2 of 2 used); 4 tasks are ahead."


def test_the_explanation_of_a_task_that_does_not_wait_has_no_position() -> None:
    view = json_of(task.ExplainAnswer, Explanation("t1", State.EXECUTING))
    assert (view["queue_position"], view["effective_priority"], view["sentence"]) == (
        None,
        None,
        "It is executing.",
    )
