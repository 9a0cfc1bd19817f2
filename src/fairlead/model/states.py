"""What may happen to a task: every state, every act, one table.

`delayed` and `queued` wait, `executing` has a lease, the rest is terminal. A pair that is not in the table
changes nothing: the act is refused or has no effect. The diagram in `docs/states.md` is made from this table,
and a test runs every state x every act through the real store and compares.
"""

from enum import StrEnum


class State(StrEnum):
    DELAYED = "delayed"  #: waits until `run_at`, or for the back-off of a retry
    QUEUED = "queued"  #: is in exactly one sub-queue
    EXECUTING = "executing"  #: has exactly one lease
    COMPLETED = "completed"  #: the holder of the newest fence reported a result
    FAILED = "failed"  #: failed for good: a permanent error, or not started in time
    CANCELLED = "cancelled"  #: cancelled by request
    DEAD_LETTER = "dead_letter"  #: used up its retries, or crashed too often


class Act(StrEnum):
    SUBMIT = "submit"
    CLAIM = "claim"
    RENEW = "renew"
    EXTEND = "extend"
    SHORTEN = "shorten"  #: a waiting task needs its tier
    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    CANCEL = "cancel"
    EXPIRE = "expire"  #: its lease expired
    PROMOTE = "promote"  #: it was promoted, its delay ended, or it waited too long
    REPLAY = "replay"


WAITING = frozenset({State.DELAYED, State.QUEUED})
TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.DEAD_LETTER})
REPLAYABLE = frozenset({State.FAILED, State.DEAD_LETTER})

#: (state, act) -> the states it may lead to. `None` is "not submitted yet".
TRANSITIONS: dict[tuple[State | None, Act], frozenset[State]] = {
    (None, Act.SUBMIT): frozenset({State.QUEUED, State.DELAYED}),
    (State.DELAYED, Act.PROMOTE): frozenset({State.QUEUED}),
    (State.DELAYED, Act.CANCEL): frozenset({State.CANCELLED}),
    (State.QUEUED, Act.CLAIM): frozenset({State.EXECUTING}),
    (State.QUEUED, Act.PROMOTE): frozenset({State.QUEUED, State.FAILED}),
    (State.QUEUED, Act.CANCEL): frozenset({State.CANCELLED}),
    (State.EXECUTING, Act.RENEW): frozenset({State.EXECUTING}),
    (State.EXECUTING, Act.EXTEND): frozenset({State.EXECUTING}),
    (State.EXECUTING, Act.SHORTEN): frozenset({State.EXECUTING}),
    (State.EXECUTING, Act.COMPLETE): frozenset({State.COMPLETED}),
    (State.EXECUTING, Act.FAIL): frozenset({State.QUEUED, State.DELAYED, State.FAILED, State.DEAD_LETTER}),
    (State.EXECUTING, Act.RELEASE): frozenset({State.QUEUED}),
    (State.EXECUTING, Act.CANCEL): frozenset({State.CANCELLED}),
    (State.EXECUTING, Act.EXPIRE): frozenset({State.QUEUED, State.DELAYED, State.FAILED, State.DEAD_LETTER}),
    (State.FAILED, Act.REPLAY): frozenset({State.QUEUED}),
    (State.DEAD_LETTER, Act.REPLAY): frozenset({State.QUEUED}),
}


def allowed(state: State | None, act: Act) -> frozenset[State]:
    """Where `act` may lead from `state`; empty when it changes nothing."""
    return TRANSITIONS.get((state, act), frozenset())
