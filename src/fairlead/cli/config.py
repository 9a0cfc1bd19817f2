"""`fairlead config`: what is in effect, and what is wrong with it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from fairlead.cli.options import DEFAULTS, Options, OutputOption, StoreOptions, open_backend, open_store
from fairlead.cli.output import compact, print_json
from fairlead.cli.table import print_table
from fairlead.settings.base import Key
from fairlead.settings.loading import DEFAULT_FILE
from fairlead.settings.sample import write_sample
from fairlead.shapes.settings import SettingAnswer, SettingsAnswer

app = App(name="config", help="Write a sample configuration, check it, and show what is in effect.")

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


@app.command
def init(
    file: Path = Path(DEFAULT_FILE),
    /,
    *,
    force: Annotated[bool, Parameter(help="Overwrite the file if it exists.", negative=())] = False,
) -> None:
    """Write a file with every setting as a comment that shows its default; else ./fairlead.toml."""
    write_sample(file, force=force)
    print(f'{file}: every setting with its default; remove the "#" of a line to change it')


@app.command
async def show(*, options: Options = DEFAULTS) -> None:
    """Show the policy that the namespace has in force, and the source of each value."""
    from fairlead.store.store import Store  # not for `config check`, which needs no server

    async with open_backend(options) as backend:
        if isinstance(backend, Store):
            settings, sources = options.read_settings()
            backend.policy.sources = sources.of_namespace(settings.engine.namespace)
        values = await backend.policy.values()
    if options.output == "json":
        print_json(SettingsAnswer(settings=[SettingAnswer.from_value(value) for value in values]))
        return
    rows = [
        (
            value.setting,
            _shown(value.value),
            value.source,
            f"{_shown(value.local_value)} ({value.local_source})" if value.differs else None,
        )
        for value in values
    ]
    print_table(("setting", "in force", "set by", "settings here"), rows)


@app.command
async def apply(*, options: Options = DEFAULTS) -> None:
    """Make the settings of this command the policy of the namespace."""
    async with open_store(options) as store:
        differing = [value for value in await store.policy.values() if value.differs]
        await store.open(govern=True, declare=False)
    if options.output == "json":
        print_json(SettingsAnswer(settings=[SettingAnswer.from_value(value) for value in differing]))
        return
    for value in differing:
        print(f"{value.setting}: {_shown(value.local_value)}, before {_shown(value.value)}")
    if not differing:
        print("The settings are in force already.")


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
    if isinstance(value, bool):
        return str(value).lower()
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
