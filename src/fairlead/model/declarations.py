"""Task types and limits as an application or a configuration file declares them, in the store's form."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from fairlead.checks import check_capabilities, check_name, check_seconds, check_whole
from fairlead.errors import InvalidInput
from fairlead.model.limit import limit_arguments
from fairlead.model.task import check_limits, write_limits
from fairlead.settings import LimitSettings, TaskSettings

Origin = Literal["code", "file"]


def declared_types(types: Mapping[str, TaskSettings]) -> list[dict[str, str]]:
    """By name; raises InvalidInput, which names the type and the field."""
    return [_declared("tasks", name, types[name], _type) for name in sorted(types, key=str)]


def declared_limits(limits: Mapping[str, LimitSettings]) -> list[dict[str, Any]]:
    return [_declared("limits", name, limits[name], _limit) for name in sorted(limits, key=str)]


def _declared(
    table: str, name: str, wanted: Any, form: Callable[[str, Any], dict[str, Any]]
) -> dict[str, Any]:
    try:
        check_name("name", name)
        return {"name": name, **form(name, wanted)}
    except InvalidInput as problem:
        field = f"{table}.{name}" + ("" if problem.field in ("name", "limit") else f".{problem.field}")
        raise InvalidInput(field, problem.reason, problem.code) from None


def _type(_: str, wanted: TaskSettings) -> dict[str, str]:
    check_limits(wanted.limits)
    check_capabilities(wanted.required_capabilities)
    check_seconds("timeout_seconds", wanted.timeout_seconds)
    check_seconds("lease_seconds", wanted.lease_seconds)
    if wanted.max_retries is not None:
        check_whole("max_retries", wanted.max_retries, 1000)
    limits = write_limits(wanted.limits)
    facts = {
        "limits": limits,
        "capabilities": ",".join(sorted(wanted.required_capabilities)),
        "timeout": _ms(wanted.timeout_seconds),
        "lease": _ms(wanted.lease_seconds),
        "max_retries": wanted.max_retries,
    }
    said = {fact: value for fact, value in facts.items() if value not in ("", None)}
    return {"limits": limits, "text": msgspec.json.encode(said).decode()}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


def _limit(name: str, wanted: LimitSettings) -> dict[str, Any]:
    kind, limit, interval, burst = limit_arguments(name, wanted)
    text = " ".join(map(str, (kind, limit, interval, burst, *(["shared"] if wanted.shared else []))))
    facts = {"kind": kind, "limit": limit, "interval": interval, "burst": burst}
    return {**facts, "shared": int(wanted.shared), "text": text}
