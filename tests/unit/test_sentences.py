"""An explanation in words is one plain sentence, for every reason why a task waits."""

from dataclasses import replace

import pytest

from fairlead.model.explanation import Blocker, Chosen, Explanation, Holder
from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.times import clock_text

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
MINUTE = 60_000
WAITS = Explanation("t", State.QUEUED, effective_priority=Priority.MEDIUM, position=1, at=NOON)
GPU = Blocker("gpu", needs=1, used=1, of=1, paused=False)
RENDER = Holder(units=1, task_id="t1", worker="render-17")
LATER = NOON + 3 * MINUTE + 12_000


def blocked(*blockers: Blocker, ahead: int = 0) -> Explanation:
    return replace(WAITS, blocked_by=blockers, position=ahead + 1)


HOLDERS = [
    (GPU, "It waits for a unit of gpu (1 of 1 used)."),
    (replace(GPU, needs=3, used=2, of=4), "It waits for 3 units of gpu (2 of 4 used)."),
    (replace(GPU, paused=True, holders=(RENDER,)), "It waits for a unit of gpu, which is paused."),
    (replace(GPU, used=0, of=0), "It waits for a unit of gpu, which is paused."),
    (replace(GPU, holders=(RENDER,)), "It waits for a unit of gpu, which render-17 holds."),
    (
        replace(GPU, holders=(RENDER,), free_at=LATER),
        "It waits for a unit of gpu, which render-17 holds until about 12:03:10 UTC.",
    ),
    (
        replace(GPU, holders=(RENDER, RENDER), free_at=LATER),
        "It waits for a unit of gpu, which render-17 and 1 other hold and which has room at about "
        "12:03:10 UTC.",
    ),
    (
        replace(GPU, holders=(RENDER,) * 3),
        "It waits for a unit of gpu, which render-17 and 2 others hold.",
    ),
    (
        replace(GPU, holders=(RENDER,), free_at=LATER, by_deadline=True),
        "It waits for a unit of gpu, which render-17 holds until 12:03:12 UTC at the latest.",
    ),
    (
        replace(GPU, holders=(Holder(units=1, lease_id="l7"),)),
        "It waits for a unit of gpu, which lease l7 holds.",
    ),
    (
        replace(GPU, holders=(Holder(units=1, foreign=True),)),
        "It waits for a unit of gpu, which someone else holds.",
    ),
    (
        replace(GPU, is_rate=True, free_at=LATER),
        "It waits for a unit of gpu, which has room at about 12:03:10 UTC.",
    ),
    (
        replace(GPU, free_at=NOON + 86_400_000, is_rate=True),
        "It waits for a unit of gpu, which has room at about 2026-01-02T12:00:00.000Z.",
    ),
]


@pytest.mark.parametrize(("blocker", "sentence"), HOLDERS)
def test_a_limit_without_room_is_named_with_those_who_hold_it(blocker: Blocker, sentence: str) -> None:
    assert blocked(blocker).sentence == sentence


def test_several_limits_are_named_together() -> None:
    both = blocked(replace(GPU, holders=(RENDER,)), replace(GPU, limit="disk", needs=2, paused=True))
    assert both.sentence == (
        "It waits for a unit of gpu, which render-17 holds, and for 2 units of disk, which is paused."
    )


def test_those_ahead_and_the_next_promotion_follow() -> None:
    waits = replace(
        blocked(replace(GPU, holders=(RENDER,), free_at=LATER), ahead=4), promotes_at=NOON + 20 * MINUTE
    )
    assert waits.sentence == (
        "It waits for a unit of gpu, which render-17 holds until about 12:03:10 UTC; 4 tasks are ahead; "
        "it becomes high at 12:20:00 UTC."
    )


def test_units_that_are_kept_for_another_task_are_explained() -> None:
    kept = replace(blocked(replace(GPU, used=0)), held_for="t9")
    assert kept.sentence == (
        "It waits for a unit of gpu (0 of 1 used); units are kept for another task, which needs several "
        "limits."
    )


@pytest.mark.parametrize(
    ("waits", "sentence"),
    [
        (WAITS, "It is next."),
        (replace(WAITS, promotes_at=NOON + MINUTE), "It is next."),
        (replace(WAITS, position=2), "It waits for a free worker; 1 task is ahead."),
        (
            replace(WAITS, effective_priority=Priority.LOW, ahead={"high": 2}, promotes_at=NOON + MINUTE),
            "It waits for a free worker; 2 tasks are ahead; it becomes medium at 12:01:00 UTC.",
        ),
        (replace(WAITS, reserve=True), "The free slots are reserved for high priority."),
        (
            replace(WAITS, reserve=True, position=4),
            "The free slots are reserved for high priority; 3 tasks are ahead.",
        ),
        (replace(WAITS, type_paused=True, blocked_by=(GPU,)), "Its task type is paused."),
        (
            replace(WAITS, no_capable_worker=True, task_type="drwa", type_unserved=True, similar_type="draw"),
            "No live worker serves the task type 'drwa': did you mean 'draw'?",
        ),
        (
            replace(WAITS, no_capable_worker=True, task_type="draw", missing_capabilities=("gpu",)),
            "No live worker that serves the task type 'draw' has the capability 'gpu'.",
        ),
        (
            Explanation("t", State.DELAYED, run_at=NOON, at=NOON),
            "It is delayed until 2026-01-01T12:00:00.000Z.",
        ),
        (Explanation("t", State.CANCELLED, at=NOON), "It is cancelled."),
    ],
)
def test_every_other_reason_is_a_sentence_too(waits: Explanation, sentence: str) -> None:
    assert waits.sentence == sentence


STARTED = Chosen(
    worker_id="w",
    at=NOON - MINUTE,
    waited_seconds=1.5,
    effective_priority=Priority.MEDIUM,
    promoted=False,
    tag=7,
)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (STARTED, "(medium)."),
        (replace(STARTED, promoted=True), "(medium, promoted)."),
        (
            replace(STARTED, better_waiting={"high": 3}),
            "(medium); 3 of high priority waited for limits or for other workers.",
        ),
        (
            replace(STARTED, skipped_for=("gpu",)),
            "(medium); tasks that went before it were skipped because gpu had no room.",
        ),
        (
            replace(STARTED, skipped_for=("a", "b", "c")),
            "(medium); tasks that went before it were skipped because a, b and c had no room.",
        ),
    ],
)
def test_a_task_that_has_started_says_why_it_was_chosen(chosen: Chosen, why: str) -> None:
    runs = Explanation("t", State.EXECUTING, at=NOON, chosen_because=chosen)
    assert (
        runs.sentence
        == f"It is executing; it started on w at 11:59:00 UTC as the first that could start {why}"
    )


def test_a_tenant_does_not_see_who_else_holds_a_limit() -> None:
    mine = Holder(units=1, task_id="t1", worker="w1", tenant="acme", since=NOON)
    theirs = Holder(units=2, task_id="t2", worker="w2", tenant="other", since=NOON, ends_at=LATER)
    operators = Holder(units=1, lease_id="l", worker="ann")
    all_of_them = replace(blocked(replace(GPU, holders=(mine, theirs, operators))), held_for="t9")
    seen = all_of_them.seen_by("acme")
    assert seen.held_for is None
    started = replace(STARTED, skipped_for=("gpu",), better_waiting={"high": 1})
    runs = Explanation("t", State.EXECUTING, chosen_because=started).seen_by("acme")
    assert runs.chosen_because == replace(started, skipped_for=()), "it may be a limit of another tenant"
    assert seen.blocked_by[0].holders == (
        mine,
        Holder(units=2, since=NOON, ends_at=LATER, foreign=True),
        Holder(units=1, foreign=True),
    )


@pytest.mark.parametrize(("seconds", "text"), [(1.4, "12:00:01"), (119, "12:01:59"), (192, "12:03:10")])
def test_a_time_that_is_not_soon_is_rounded(seconds: float, text: str) -> None:
    assert clock_text(NOON + round(1000 * seconds), NOON, about=True) == f"{text} UTC"
