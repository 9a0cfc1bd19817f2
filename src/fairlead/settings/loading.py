"""Where settings come from: the file, the environment, the options; each overrides the ones before."""

import contextlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from fairlead.errors import InvalidSettings
from fairlead.settings import Settings
from fairlead.settings.base import Key
from fairlead.settings.building import Builder
from fairlead.settings.processes import DEFAULT_NAMESPACE
from fairlead.settings.sources import Sources

DEFAULT_FILE = "fairlead.toml"
PREFIX = "FAIRLEAD_"
GATEWAY_URL, GATEWAY_KEY = "FAIRLEAD_URL", "FAIRLEAD_KEY"  # of clients: a server has no use for them

# Names that other gateways use for the same things. Fairlead's own name for a key wins over these.
FAMILIAR_NAMES = {
    "MAX_CONCURRENT_TASKS": "worker.capacity",
    "HIGH_PRIORITY_RESERVED": "worker.reserve",
    "PROMOTE_LOW_TO_MEDIUM_AFTER": "promotion.low_to_medium_seconds",
    "PROMOTE_MEDIUM_TO_HIGH_AFTER": "promotion.medium_to_high_seconds",
    "REDIS_URL": "engine.url",
    "DATABASE_URL": "history.url",
    "PRIORITY_API_URL": "priority_service.url",
}


def load_settings(
    path: Path | None, env: Mapping[str, str], options: Mapping[str, tuple[str, str]] | None = None
) -> Settings:
    """The settings in effect; with no path, `fairlead.toml` in the working folder counts if it is there."""
    return read_settings(path, env, options)[0]


def load_client_settings(
    path: Path | None, env: Mapping[str, str], options: Mapping[str, tuple[str, str]]
) -> Settings:
    """For clients of a gateway: FAIRLEAD_URL and FAIRLEAD_KEY apply where no option is given."""
    given = dict(options)
    if not (given["engine.url"][1] or given["engine.data"][1]):
        given["engine.url"] = (GATEWAY_URL, env.get(GATEWAY_URL, ""))
    if not given["engine.key"][1]:
        given["engine.key"] = (GATEWAY_KEY, env.get(GATEWAY_KEY, ""))
    option, keys = given["engine.key"]
    given["engine.key"] = option, _key_of(keys.split(","), given["engine.namespace"][1])
    return load_settings(path, env, given)


def _key_of(keys: list[str], namespace: str) -> str:
    """Of several keys, the one of this namespace: it ends with its name, unless that is `default`."""
    ending = "" if namespace in ("", DEFAULT_NAMESPACE) else namespace
    return next((key for key in keys if key.partition(".")[2] == ending), keys[0])


def read_settings(
    path: Path | None, env: Mapping[str, str], options: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Settings, Sources]:
    """The settings in effect, and by what each key was set. Options are `{key: (option, value)}`."""
    tree: dict[str, Any] = {}
    sources = Sources()
    file = path or Path(DEFAULT_FILE)
    if path is not None or file.is_file():
        sources.files[str(file)], written = _read_file(file)
        _put(tree, (), written, str(file), sources)
    for name, key in FAMILIAR_NAMES.items():
        _put_text(tree, tuple(key.split(".")), env.get(name, ""), name, sources)
    for name in sorted(env):
        if name.startswith(PREFIX) and "__" in name:
            key_path = tuple(name.removeprefix(PREFIX).lower().split("__"))
            _put_text(tree, key_path, env[name], name, sources)
    for key, (option, value) in (options or {}).items():
        _put_text(tree, tuple(key.split(".")), value, option, sources)
    settings = _counted_from_the_submit(Builder(sources).section(Settings(), tree, ()), sources)
    return settings.of_namespace(settings.engine.namespace), sources


def _counted_from_the_submit(settings: Settings, sources: Sources) -> Settings:
    """Gateways that know PROMOTE_MEDIUM_TO_HIGH_AFTER count it from the submit also of a low task."""
    promotion = settings.promotion
    variable, after = "PROMOTE_MEDIUM_TO_HIGH_AFTER", promotion.medium_to_high_seconds
    is_set = sources.names.get(("promotion", "medium_to_high_seconds")) == variable
    if not is_set or not after or promotion.low_to_high_seconds is not None:
        return settings
    seconds = max(after, promotion.low_to_medium_seconds)
    sources.names["promotion", "low_to_high_seconds"] = variable
    return replace(settings, promotion=replace(promotion, low_to_high_seconds=seconds))


def _read_file(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InvalidSettings(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"{path} is not TOML: {error}") from error


def _put_text(tree: dict[str, Any], key: Key, text: str, source: str, sources: Sources) -> None:
    # An empty variable is an unset one: deployment files pass on what was never given that way.
    if text.strip():
        sources.texts[key] = text
        _put(tree, key, _parse(text), source, sources)


def _parse(text: str) -> Any:
    """A TOML value if it is one, else the text itself."""
    with contextlib.suppress(tomllib.TOMLDecodeError):
        parsed = tomllib.loads(f"value = {text}")
        if parsed.keys() == {"value"}:
            return parsed["value"]
    return text


def _put(tree: dict[str, Any], key: Key, value: Any, source: str, sources: Sources) -> None:
    """Write a value into the tree at its key; tables are merged, everything else is replaced."""
    # A limit is one value even when it is written as a table: half of one and half of another is neither.
    if isinstance(value, dict) and (not key or (value and key[:-1] != ("limits",))):
        for name, inner in value.items():
            _put(tree, (*key, name), inner, source, sources)
        return
    *tables, last = key
    place = tree
    for name in tables:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    place[last] = value
    (sources.empty if value == {} else sources.names)[key] = source
