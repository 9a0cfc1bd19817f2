"""The table of states: nothing dead in it, and the page that shows it is the page it gives."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.model.states import REPLAYABLE, TERMINAL, TRANSITIONS, Act, State, allowed

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_the_table_gives() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "states-page")]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "states.md").read_text() == made, "run scripts/states-page > docs/states.md"


def test_no_entry_of_the_table_is_empty() -> None:
    assert all(TRANSITIONS.values())


def test_every_act_is_in_the_table() -> None:
    assert {act for _, act in TRANSITIONS} == set(Act)


def reachable() -> Iterator[State]:
    found: set[State | None] = {None}
    while new := {t for (start, _), ends in TRANSITIONS.items() if start in found for t in ends} - found:
        found |= new
        yield from (state for state in new if state)


def test_every_state_can_be_reached() -> None:
    assert set(reachable()) == set(State)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_only_a_replay_leads_out_of_an_end(state: State) -> None:
    leads_out = {act for act in Act if allowed(state, act)}
    assert leads_out == ({Act.REPLAY} if state in REPLAYABLE else set())


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL))
def test_every_task_that_has_not_ended_can_be_cancelled(state: State) -> None:
    assert allowed(state, Act.CANCEL) == {State.CANCELLED}


def test_an_act_that_is_not_in_the_table_changes_nothing() -> None:
    assert allowed(State.COMPLETED, Act.FAIL) == frozenset()
