import asyncio

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.fleet import Fleet
from tests.model.machine import Machine
from tests.model.tiered import Tiered
from tests.servers import running


@pytest.mark.timeout(400)
def test_tiers_are_given_and_taken_back_exactly_as_the_rules_say() -> None:
    with running("valkey") as server, asyncio.Runner() as runner:
        Machine.url, Machine.loop, Machine.claims = server.url, runner.get_loop(), 0
        Machine.doctor_every = 4
        run_state_machine_as_test(
            Tiered,
            settings=settings(
                max_examples=40,
                derandomize=True,  # the campaign `chaos model` plays others
                stateful_step_count=60,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
        assert min(Machine.seen[what] for what in ("revoked", "halted", "admitted", "denied")) > 3


@pytest.mark.timeout(400)
def test_the_store_chooses_and_remembers_exactly_as_the_rules_say() -> None:
    with running("valkey") as server, asyncio.Runner() as runner:
        Machine.url, Machine.loop, Machine.claims = server.url, runner.get_loop(), 0
        Machine.doctor_every = 4  # the campaign asks it after every act
        run_state_machine_as_test(
            Fleet,
            settings=settings(
                max_examples=120,
                stateful_step_count=60,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
        assert Machine.claims > 500
        assert Machine.seen["handed over"] > 10
        assert Machine.seen["deleted"] > 10
