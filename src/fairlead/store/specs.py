"""A new task as the submit script takes it: defaults filled in, names and numbers in the store's form."""

import hashlib
from typing import Any

from fairlead.checks import to_json
from fairlead.model.accounts import account_of, weight_of
from fairlead.model.priority import NAMED_PRIORITIES
from fairlead.model.task import TEXTS, NewTask, check, write_key, write_limits
from fairlead.model.tenants import scope_of
from fairlead.settings import Settings

#: What the client did not ask for: the same task may come with other ones from another process.
NOT_ASKED = frozenset({"id", "facts", "weight", "scope", "default_timeout", "default_retries"})
#: The same request again may belong to another trace.
OF_TRACES = frozenset({"trace_id", "traceparent"})
NUMBERS = {"concurrency_limit": int, "max_wait_seconds": float, "delay_seconds": float}


def spec_of(new: NewTask, settings: Settings) -> dict[str, Any]:
    """Raises InvalidInput, which names the field. What is declared of its type is added by the script."""
    check(new)
    defaults = getattr(settings.priorities, new.priority)
    fair = account_of(new.tenant, new.user_id, settings)
    spec: dict[str, Any] = {
        "id": new.task_id,
        "type": new.task_type,
        "parameters": to_json("parameters", new.parameters),
        "priority": int(NAMED_PRIORITIES[new.priority]),
        "capabilities": ",".join(sorted(set(new.required_capabilities))),
        "limits": write_limits(_needs(new)),
        "fair": fair,
        "default_timeout": _ms(defaults.timeout_seconds),
        "default_retries": defaults.max_retries,
    }
    if new.timeout_seconds is not None:
        spec["timeout"] = _ms(new.timeout_seconds)
    if new.max_retries is not None:
        spec["max_retries"] = new.max_retries
    weight = weight_of(new.tenant, new.user_id, settings) if new.weight is None else float(new.weight)
    if weight != 1:
        spec["weight"] = repr(weight)
    if facts := _facts(new):
        spec["facts"] = facts
    _add_times(spec, new)
    if new.concurrency_limit is not None:
        spec["group"] = new.concurrency_group or new.task_type
        spec["group_limit"] = new.concurrency_limit
    if new.by_tenant and spec["limits"]:
        spec["scope"] = scope_of(new.tenant)
    if new.idempotency_key is not None:
        # the name, not the account: digests of an older version must stay what they are
        named = (new.user_id if settings.fairness.by == "user_id" else new.tenant) or ""
        spec["digest"] = _digest(spec | {"fair": named}, new.priority_asked)
        spec["key"] = write_key(new.tenant or "", new.idempotency_key)
    return spec


def _facts(new: NewTask) -> dict[str, str]:
    facts = {
        name: value for name in (*TEXTS, "concurrency_group") if (value := getattr(new, name)) is not None
    }
    for name, kind in NUMBERS.items():
        value = _wait_of(new) if name == "max_wait_seconds" else getattr(new, name)
        if value is not None:
            facts[name] = repr(kind(value))  # 1 and 1.0 are the same
    return facts


def _needs(new: NewTask) -> dict[str, int]:
    needs = dict(new.limits)
    if new.concurrency_group is not None or new.concurrency_limit is not None:
        needs.setdefault(new.concurrency_group or new.task_type, 1)
    return needs


def _add_times(spec: dict[str, Any], new: NewTask) -> None:
    if new.run_at is not None:
        spec["run_at"] = new.run_at
    if new.delay_seconds:
        spec["delay"] = _ms(new.delay_seconds)
    if (wait := _wait_of(new)) is not None:
        spec["max_wait"] = _ms(wait)
    if new.deadline_seconds is not None:
        spec["start_within"] = _ms(new.deadline_seconds)


def _wait_of(new: NewTask) -> float | None:
    return new.max_wait_seconds if new.deadline_seconds is None else new.deadline_seconds


def _digest(spec: dict[str, Any], priority_asked: bool) -> str:
    """The same request again has the same digest, whatever its id and its trace."""
    left_out = NOT_ASKED if priority_asked else NOT_ASKED | {"priority"}
    facts = {name: value for name, value in spec.get("facts", {}).items() if name not in OF_TRACES}
    content = sorted((name, repr(value)) for name, value in spec.items() if name not in left_out)
    content.append(("facts", repr(facts)))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
