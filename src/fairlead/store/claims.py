"""Blobs that tasks and jobs are submitted with: claimed before the act, and given up when they have ended."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fairlead.blobs.blobs import Blobs
from fairlead.blobs.shelf import Need, Owner
from fairlead.errors import FairleadError
from fairlead.model.blob import MARK
from fairlead.model.job import JobStatus
from fairlead.model.states import REPLAYABLE, TERMINAL
from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import Connection, text

Spec = Mapping[str, Any]


async def claim_all(blobs: Blobs, specs: Sequence[Spec]) -> list[FairleadError | None]:
    """Why each cannot be submitted, if its blobs are not there; the store is not asked."""
    if not any(MARK in spec["parameters"] for spec in specs):
        return [None] * len(specs)
    return await asyncio.gather(*(_refusal(blobs, spec) for spec in specs))


async def claim(blobs: Blobs, spec: Spec) -> None:
    """Raises InvalidInput if one of its blobs is not there."""
    tenant = spec.get("facts", {}).get("tenant")
    await blobs.claim(Owner("task", spec["id"]), tenant, "parameters", spec["parameters"])


async def _refusal(blobs: Blobs, spec: Spec) -> FairleadError | None:
    try:
        await claim(blobs, spec)
    except FairleadError as problem:
        return problem
    return None


async def needs_of(connection: Connection, owners: Collection[Owner]) -> dict[Owner, Need]:
    """Whether these tasks and jobs still need the blobs that they were submitted with."""
    if not owners:
        return {}
    fields = {"task": "state", "job": "status"}
    commands = [("HGET", connection.keys.key(one.kind, one.id), fields[one.kind]) for one in owners]
    states = await read_in_pieces(connection, commands)
    return {
        owner: _need(None if state is None else text(state))
        for owner, state in zip(owners, states, strict=True)
    }


def _need(state: str | None) -> Need:
    if state is None:
        return "unknown"
    if state in REPLAYABLE or state == JobStatus.FAILED:  # it may be replayed, or resumed
        return "perhaps"
    is_over = state in TERMINAL or state in (JobStatus.COMPLETED, JobStatus.CANCELLED)
    return "never" if is_over else "now"
