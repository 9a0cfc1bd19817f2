"""Reads the Lua acts. The header of a file is its signature; the loader turns it into named locals.

    -- Purpose, in a sentence.
    --
    -- KEYS     meta
    -- ARGV     worker want clock
    -- RETURNS  ok <task>... | unknown_worker
    -- FLAGS    allow-oom
    -- USES     unit tasks

`FLAGS` goes to the server: an act that ends work runs even when memory is full. `USES` names files of
`lua/lib/`, which may use others; each is included once, before what needs it.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fairlead.store.keys import write_keys

HEADER = re.compile(r"^-- (KEYS|ARGV|RETURNS|FLAGS|USES)\s+(.*)$")
FUNCTION = re.compile(r"^((?:--.*\n)*local function (\w+)\((?:.* end\n|.*\n(?:(?!end).*\n)*end\n))", re.M)
NAME = re.compile(r"\w+")
CORE = ("unit", "hashes", "ordered", "begin")  # names used everywhere
ACTS = files("fairlead.store") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    """One act, ready to be sent."""

    name: str
    arguments: tuple[str, ...]
    text: str
    sha: str


def read_header(source: str) -> dict[str, tuple[str, ...]]:
    header: dict[str, tuple[str, ...]] = {}
    last = ""
    for line in source.splitlines():
        if not line.startswith("--"):
            break
        match = HEADER.match(line)
        if match:
            last = match[1]
            header[last] = tuple(match[2].split())
        elif last and line.startswith("--          "):
            header[last] += tuple(line[2:].split())
    return header


def names() -> list[str]:
    return sorted(entry.name.removesuffix(".lua") for entry in ACTS.iterdir() if entry.name.endswith(".lua"))


@cache
def load(name: str, call: str = "redis.call") -> Script:
    """The act `name`. `call` is the only way by which it speaks to the server; a fault test gives another."""
    body = (ACTS / f"{name}.lua").read_text()
    header = read_header(body)
    libraries = _only_what_is_used(_libraries(header.get("USES", ())), body)
    core = [libraries.pop(library) for library in CORE if library in libraries]
    # A function that uses a local of the function around it has to find it in a list, each time the script
    # runs; what is two functions away is copied. So the names everybody uses stand outside a function.
    program = "\n".join([*core, "return (function()", *libraries.values(), body, "end)()"])
    arguments = header.get("ARGV", ())
    named = "".join(f"local {argument} = ARGV[{i}]\n" for i, argument in enumerate(arguments, 1))
    flags = ",".join(header.get("FLAGS", ()))
    text = f"#!lua flags={flags}\nlocal call = {call}\n{named}{write_keys(program)}"
    return Script(name, arguments, text, hashlib.sha1(text.encode()).hexdigest())


def _only_what_is_used(libraries: dict[str, str], body: str) -> dict[str, str]:
    """Libraries without the functions this act never reaches: each of its calls would make them in vain."""
    while True:
        program = "\n".join([*libraries.values(), body])
        uses = Counter(NAME.findall(program))
        unused = [text for text, name in FUNCTION.findall(program) if uses[name] == 1]
        if not unused:
            return libraries
        for text in unused:
            libraries = {name: source.replace(text, "") for name, source in libraries.items()}


def _libraries(wanted: tuple[str, ...]) -> dict[str, str]:
    texts: dict[str, str] = {}

    def include(name: str) -> None:
        if name in texts:
            return
        source = (ACTS / "lib" / f"{name}.lua").read_text()
        for other in read_header(source).get("USES", ()):
            include(other)
        texts[name] = source

    for name in wanted:
        include(name)
    return texts
