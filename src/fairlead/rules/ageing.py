"""Ageing: when a waiting task is promoted, and to which place."""

from fairlead.rules.values import Place, Policy, Task

#: Promotions from place to place, in the order in which they are made: a task may make two at once.
STEPS = {
    Place.LOW: Place.MEDIUM_BY_AGE,
    Place.MEDIUM: Place.HIGH_BY_AGE,
    Place.MEDIUM_BY_AGE: Place.HIGH_BY_AGE,
}


def promotion(task: Task, policy: Policy) -> int | None:
    """The instant of its next promotion, whether due or not."""
    after = {
        Place.LOW: policy.low_to_medium,
        Place.MEDIUM: policy.medium_to_high,
        Place.MEDIUM_BY_AGE: policy.low_to_high,
    }.get(task.place, 0)
    return task.arrival + after if after else None
