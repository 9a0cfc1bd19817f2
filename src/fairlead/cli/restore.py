"""`fairlead restore`: after a loss of data, the live state comes back from the history."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import to_builtins

from fairlead.cli.audit import note
from fairlead.cli.backup import restore_backup
from fairlead.cli.history_options import opened_history
from fairlead.cli.open import until_open
from fairlead.cli.options import DEFAULTS, OutputOption, StoreOptions
from fairlead.cli.output import print_json, say
from fairlead.errors import InvalidInput
from fairlead.history.restoring import LOST, Restore, Restored
from fairlead.store.opening import connected_store


async def restore(
    *,
    dry_run: Annotated[
        bool, Parameter(help="Only show what was lost, and what would be restored.", negative=())
    ] = False,
    from_: Annotated[
        Path | None, Parameter(name="--from", help="A folder that `fairlead backup` has made, instead.")
    ] = None,
    options: StoreOptions = DEFAULTS,
    output: OutputOption = "table",
) -> None:
    """Rebuild what the store has lost from the history: tasks, jobs, limits and keys.

    Nothing is accepted or started until it is complete. If it is interrupted, run it again. With --from the
    data of a backup is put into an empty data folder.
    """
    settings, _ = options.read_settings()
    if from_:
        if dry_run:
            raise InvalidInput("--dry-run", "does not go with --from, which changes no folder that has data")
        await restore_backup(settings, from_)
        return
    async with opened_history(settings) as history, connected_store(settings) as store:
        work = Restore(store, history)
        if dry_run:
            standing, _, _ = await work.look()
            _print_plan(output, standing in LOST, await work.plan())
            return
        done = await work.run(settings.hold_ms)
        if done.opens_in > 0:
            words = f"opens in {done.opens_in:.0f} s, when all leases from before have ended"
            say(f"Restored; namespace {settings.engine.namespace!r} {words}.")
        await until_open(store)
        store.remember()
        facts = to_builtins(done)
        await note(store, "restore", settings.engine.namespace, None, _short(facts))
        _print(output, done, f"Namespace {settings.engine.namespace!r} is open.")


def _print_plan(output: str, is_lost: bool, plan: Restored) -> None:
    if output == "json":
        print_json({"lost": is_lost} | to_builtins(plan))
    elif is_lost:
        _print(output, plan, "The store has lost it: `fairlead restore` brings it back.")
    else:
        print("Nothing is lost: the store is as new as the history.")


def _print(output: str, done: Restored, last: str) -> None:
    if output == "json":
        print_json(to_builtins(done))
        return
    print(f"tasks: {_counts(done.tasks)}")
    print(f"jobs: {_counts(done.jobs)}")
    if done.kept:
        print(f"as new as the history: {done.kept}")
    if done.steps_again:
        print(f"steps queued again, because their end was not recorded: {done.steps_again}")
    for name in done.unknown_limits:
        print(
            f"limit {name} is not in the history and allows nothing: set it with `fairlead limit set {name}`"
        )
    for task in done.missing:
        print(f"task {task} is not restored: its record was gone before it was recorded")
    print(last)


def _counts(counts: Any) -> str:
    return ", ".join(f"{count} {state.lower()}" for state, count in counts.items()) or "none"


def _short(facts: dict[str, Any]) -> dict[str, Any]:
    """For the audit."""
    return facts | {"missing": len(facts["missing"]), "unknown_limits": len(facts["unknown_limits"])}
