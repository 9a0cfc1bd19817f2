"""Finding a user's code: `module:attr` for the command line, a module or a script for a handler's process."""

import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fairlead.errors import InvalidInput
from fairlead.worker.handler import Handler, defined_in

if TYPE_CHECKING:
    from fairlead.app.app import Fairlead


def load_app(target: str) -> "Fairlead":
    """What `module:attr` names; modules are looked for in the working folder too."""
    from fairlead.app.app import Fairlead

    name, _, attribute = target.partition(":")
    if not name or not attribute:
        raise InvalidInput("app", f"{target!r} is not of the form module:attribute, as in `tasks:fl`")
    folder = _working_folder()
    if "" not in sys.path and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(problem.name + ".")):
            raise InvalidInput("app", f"there is no module {problem.name!r} in {folder}") from None
        raise
    except SystemExit as problem:
        raise InvalidInput("app", f"{name} calls sys.exit({problem.code!r}) when it is imported") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidInput("app", f"{name} has no {part!r}")
        found = getattr(found, part)
    found = getattr(found, "async_app", found)  # of a blocking app
    if not isinstance(found, Fairlead):
        raise InvalidInput("app", f"{target} is a {type(found).__name__}, not a Fairlead")
    return found


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise InvalidInput(
            "app", "the working folder no longer exists: change to the folder of the app, and start it again"
        ) from None


@functools.cache
def load_handler(source: str, task_type: str) -> Handler:
    """The handler of this type that a module or a script defines."""
    if handler := defined_in(_load(source), task_type):
        return handler
    raise InvalidInput(
        "task_type",
        f"{source} defines no task {task_type!r} at its top level: decorate it there with `@fl.task`",
    )


@functools.cache
def _load(source: str) -> ModuleType:
    if not source.endswith(".py"):
        return importlib.import_module(source)
    # not as `__main__`: the part of a script that is for the command line must not run here
    spec = importlib.util.spec_from_file_location("__fairlead_main__", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["__fairlead_main__"] = module
    spec.loader.exec_module(module)
    return module
