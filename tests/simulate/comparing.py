"""The engine against the rules on one random scene; the tests play some, `python -m chaos simulate` many."""

import random
from collections import Counter
from copy import deepcopy

from fairlead.simulate.engine import Simulation
from tests.simulate.brute import Player
from tests.simulate.scenes import Kinds, random_scene, rest_of, simulate, snapshot_of


def compare_from_the_start(seed: int) -> Counter[str]:
    """What was in the schedule."""
    scene = random_scene(random.Random(seed))
    player = Player(scene)
    expected = list(player.play())
    found, ends = simulate(scene)
    assert found == expected, f"seed {seed}"
    assert ends == player.ended, f"seed {seed}"
    return player.seen + Counter(starts=len(expected))


def compare_from_a_snapshot(seed: int) -> Counter[str]:
    """The rules play until some instant; from there on the engine and two forks of it must do the same."""
    dice = random.Random(seed)
    scene = random_scene(dice)
    player = Player(scene)
    for _ in player.play(until=dice.randint(0, 150)):
        pass
    kinds = Kinds(scene.policy)
    snapshot, ids = snapshot_of(player, kinds)
    snapshot = deepcopy(snapshot, kinds.same())  # the rules go on with their own
    arrivals = list(rest_of(player, kinds, len(snapshot.waiting)))
    player.seen.clear()
    expected = list(player.play())
    first = Simulation(snapshot, arrivals=arrivals)
    for simulation in (first.fork(arrivals=arrivals), first.fork(arrivals=arrivals), first):
        found = [(ids[number], at) for number, at in simulation.starts()]
        assert found == expected, f"seed {seed}"
    return player.seen + Counter(starts=len(expected))
