"""`fairlead config`: what is in effect, and what is wrong with it."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from cyclopts import App

from fairlead.cli.options import DEFAULTS, OutputOption, StoreOptions
from fairlead.cli.output import compact, print_json, print_table
from fairlead.settings.sources import Key

app = App(name="config", help="Check the configuration and show what is in effect.")

PASSWORD = re.compile(r"(?<=://)([^:/@]*):.*@")
PASSWORD_ARGUMENT = re.compile(r"\bpassword=[^&]*")


@app.command
def check(*, options: StoreOptions = DEFAULTS, output: OutputOption = "table") -> None:
    """Check the configuration and show what is in effect, with what set it."""
    settings, sources = options.read_settings()
    in_effect = _without_passwords(msgspec.to_builtins(settings))
    if output == "json":
        set_by = {".".join(key): source for key, source in sources.names.items()}
        print_json({"settings": in_effect, "set_by": set_by})
        return
    rows = [
        (".".join(key), _shown(value), sources.of(key) or "default") for key, value in _flat(in_effect, ())
    ]
    print_table(("setting", "value", "set by"), rows)


def _flat(tree: dict[str, Any], key: Key) -> Iterator[tuple[Key, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*key, name))
        else:
            yield (*key, name), value


def _shown(value: Any) -> str:
    if value is None or value == {} or value == []:
        return "-"
    if isinstance(value, list | tuple):
        return compact(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _without_passwords(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {name: _without_passwords(inner) for name, inner in value.items()}
        return shown | {"key": "***"} if shown.get("key") else shown
    if isinstance(value, list):
        return [_without_passwords(inner) for inner in value]
    if isinstance(value, str):
        return PASSWORD_ARGUMENT.sub("password=***", PASSWORD.sub(r"\1:***@", value))
    return value
