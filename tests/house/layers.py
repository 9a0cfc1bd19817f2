"""The house's import rule and its short list of banned calls, checked on the syntax tree."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

# From the top down: a module imports from its own layer and the ones below.
LAYERS = (
    ("cli", "dashboard", "sync", "testing"),
    ("app",),
    ("api",),
    ("worker",),
    ("upkeep",),
    ("client",),
    ("live",),
    ("pipeline",),
    ("history",),
    ("store",),
    ("backend", "blobs", "slots"),
    ("estimates",),
    ("simulate",),
    ("rules",),
    ("cron",),
    ("shapes", "tracing"),
    ("model",),
    ("background", "buckets", "lease_guard", "open_files"),
    ("log",),
    ("settings",),
    ("checks", "clock", "errors", "timeouts", "times"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Libraries that only these rooms may import: everything that speaks to that outside world is in there.
ROOMS_OF = {
    "redis": {"store"},
    "hiredis": {"store"},
    "asyncpg": {"history"},
    "sqlite3": {"history"},
    "fastapi": {"api"},
    "starlette": {"api"},
    "obstore": {"buckets", "blobs", "slots"},
    "httptools": {"api"},
    "opentelemetry": {"tracing"},
}
CLOCK_CALLS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
}
NAME_A_SHELL = {"install_completion"}  # their `shell` names one, and runs none
BANNED_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve"}


def breaches(path: str, source: str) -> list[str]:
    """What a module of src/fairlead does that the house forbids; `path` is relative to that folder."""
    tree = ast.parse(source, path)
    room = path.split("/")[0].removesuffix(".py")
    found = [*_unsafe(tree)]
    if room != "clock":
        found += _clock_reads(tree)
    if room != "__init__":
        if room not in LEVEL:
            return [f"{path}: {room} has no layer; give it one in tests/house/layers.py"]
        for module in imported(tree, path):
            found += _import_breach(room, module)
    return [f"{path}: {what}" for what in found]


def unsafe_calls(path: str, source: str) -> list[str]:
    """What no Python file of the repository may do."""
    return [f"{path}: {what}" for what in _unsafe(ast.parse(source, path))]


def imported(tree: ast.AST, path: str) -> Iterator[str]:
    """Every module a file imports, anywhere in it, as an absolute name."""
    package = ["fairlead", *Path(path).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from fairlead import errors` names a module, `from fairlead.model.task import Task` does not.
            yield from (
                (f"{module}.{alias.name}" for alias in node.names) if module == "fairlead" else [module]
            )


def _import_breach(room: str, module: str) -> list[str]:
    top, *rest = module.split(".")
    if top == "fairlead":
        return _layer_breach(room, rest[0] if rest else "__init__")
    if room not in (allowed := ROOMS_OF.get(top, {room})):
        return [f"imports {top}, which only {', '.join(f'{one}/' for one in sorted(allowed))} may"]
    if room == "rules" and top not in sys.stdlib_module_names:
        return [f"rules/ is standard library only, but imports {top}"]
    return []


def _layer_breach(room: str, target: str) -> list[str]:
    if target == "__version__":
        return []
    if target not in LEVEL:
        return [f"imports {target} from fairlead itself: import it from the module that defines it"]
    return [f"{room} imports {target}, which is above it"] if LEVEL[target] < LEVEL[room] else []


def _clock_reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (
                f"imports time.{a.name}: use clock" for a in node.names if ("time", a.name) in CLOCK_CALLS
            )
        elif isinstance(node, ast.Attribute) and (_last_name(node.value), node.attr) in CLOCK_CALLS:
            yield f"reads {_last_name(node.value)}.{node.attr}: only clock.py may"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _unsafe(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"imports {a.name}" for a in node.names if a.name in BANNED_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in BANNED_MODULES:
            yield f"imports {node.module}"
        elif isinstance(node, ast.Call):
            yield from _unsafe_call(node)


def _unsafe_call(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec"):
        yield f"calls {call.func.id}"
    for keyword in call.keywords:
        off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg == "shell" and not off and _last_name(call.func) not in NAME_A_SHELL:
            yield "runs a shell"
