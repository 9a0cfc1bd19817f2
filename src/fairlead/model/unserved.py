"""Tasks that no live worker can run: what is missing, in words."""

from collections.abc import Iterable, Mapping, Sequence


def warnings_of(unserved: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """For the answer to a submit, from what an act found. They stay true while workers are starting."""
    return tuple(dict.fromkeys(_warning(one["type"], one["capabilities"]) for one in unserved))


def _warning(task_type: str, capabilities: str) -> str:
    needed = f" with the {_named(capabilities.split(','))}" if capabilities else ""
    return f"no worker serves {task_type!r}{needed} yet; it waits until one does"


def unserved_sentence(
    task_type: str, missing: Sequence[str], similar: str | None, *, serves_type: bool
) -> str:
    """Why a task waits. `missing`: capabilities that none of the workers of its type has."""
    if not serves_type:
        hint = f": did you mean {similar!r}?" if similar else "."
        return f"No live worker serves the task type {task_type!r}{hint}"
    if missing:
        return f"No live worker that serves the task type {task_type!r} has the {_named(missing)}."
    return (
        f"The workers that serve the task type {task_type!r} do not respond, or none of them has all "
        "capabilities that the task needs."
    )


def _named(capabilities: Sequence[str]) -> str:
    word = "capability" if len(capabilities) == 1 else "capabilities"
    return f"{word} {', '.join(map(repr, capabilities))}"
