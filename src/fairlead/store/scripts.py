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

The server keeps an act as a function and makes its parts once, not at each call, which would cost more than
most acts. So what a library knows of a call, its variables, is set anew at the beginning of each; what it
never changes is in capitals and is made once, when the function is loaded: nothing of the server is there
then, not even `string`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fairlead.store.keys import write_keys

HEADER = re.compile(r"^-- (KEYS|ARGV|RETURNS|FLAGS|USES)\s+(.*)$")
FUNCTION = re.compile(r"^((?:--.*\n)*local function (\w+)\((?:.* end\n|.*\n(?:(?!end).*\n)*end\n))", re.M)
VARIABLES = re.compile(r"^local ([a-z]\w*(?:, \w+)*)(?: = (.*?))?(?: *--.*)?\n|^(on_commit\(.*\))\n", re.M)
DECLARATION = re.compile(r"^local (?:(function) (\w+)|((?:\w+, )*\w+)( =|\n))", re.M)
NAME = re.compile(r"\w+")
CORE = ("unit", "hashes", "fields", "ordered", "begin")  # names used everywhere
STORE = files("fairlead.store")
ACTS = STORE / "lua"
LIBRARIES = "fairlead_"  # how the names of all functions begin


@dataclass(frozen=True, slots=True)
class Script:
    """One act, ready to be sent: as a function that the server keeps, or as a script where it may not."""

    name: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...]
    program: str

    @property
    def function(self) -> str:
        flags = ", ".join(f"'{flag}'" for flag in self.flags)
        name = function_of(self.name)
        return (
            f"#!lua name={name}\n{self.program}"
            f"redis.register_function{{function_name = '{name}', callback = run, flags = {{{flags}}}}}\n"
        )

    @property
    def text(self) -> str:
        return f"#!lua flags={','.join(self.flags)}\n{self.program}return run(KEYS, ARGV)\n"

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode()).hexdigest()


@cache
def edition() -> str:
    """How the names of functions begin that are made of these very files: others may serve other versions."""
    libraries = [entry for entry in (ACTS / "lib").iterdir() if entry.name.endswith(".lua")]
    sources = [
        *(ACTS / f"{name}.lua" for name in names()),
        *libraries,
        STORE / "keys.py",
        STORE / "scripts.py",
    ]
    texts = sorted(source.read_text() for source in sources)
    return f"{LIBRARIES}{hashlib.sha1(''.join(texts).encode()).hexdigest()[:16]}_"


@cache
def function_of(name: str) -> str:
    """What the server knows the act by; it may know it already, so nothing has to be built to call it."""
    return edition() + name


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
    libraries = {library: _begun_anew(library, source) for library, source in libraries.items()}
    # A function may use sixty names of those around it, and have two hundred: what is used everywhere stands
    # outside a function that holds the others, and each of those shows only the names that others use.
    core = {library: libraries.pop(library) for library in CORE if library in libraries}
    libraries = {library: _closed(library, libraries, body) for library in libraries}
    program = (
        f"{''.join(core.values())}local function begin_core(KEYS, ARGV)\n  begin_call(KEYS, ARGV)\n"
        f"{_begins(core)}end\n"
        f"local run = (function()\n{''.join(libraries.values())}local function act()\n{body}end\n"
        f"return function(KEYS, ARGV)\n  begin_core(KEYS, ARGV)\n{_begins(libraries)}  return act()\nend\n"
        "end)()\n"
    )
    keys, program = write_keys(program)
    arguments = header.get("ARGV", ())
    return Script(name, arguments, header.get("FLAGS", ()), _begin_call(call, keys, arguments) + program)


def _begins(libraries: Iterable[str]) -> str:
    return "".join(f"  begin_{library}()\n" for library in libraries)


def _begin_call(call: str, keys: Mapping[str, str], arguments: Sequence[str]) -> str:
    """Sets what a call is given; its keys only when it is not about the namespace of the call before."""
    lines = [
        f"local {', '.join(['call', 'given_key', *keys, *arguments])}",
        "local function begin_call(KEYS, ARGV)",
    ]
    lines += [f"  call = {call}", "  if KEYS[1] ~= given_key then", "    given_key = KEYS[1]"]
    lines += [f"    {name} = {value}" for name, value in keys.items()]
    lines += ["  end", *(f"  {argument} = ARGV[{i}]" for i, argument in enumerate(arguments, 1)), "end\n"]
    return "\n".join(lines)


def _begun_anew(library: str, source: str) -> str:
    """The library with a function that sets its variables: one call must know nothing of the call before."""
    settings: list[str] = []

    def declared(match: re.Match[str]) -> str:
        variables, values, act = match.groups()
        settings.append(act or f"{variables} = {values or 'nil'}")
        return f"local {variables}\n" if variables else ""

    source = VARIABLES.sub(declared, source)
    return "\n".join(
        [f"{source}local function begin_{library}()", *(f"  {line}" for line in settings), "end\n"]
    )


def _closed(library: str, libraries: Mapping[str, str], body: str) -> str:
    """The library as a block; the names that the others or the act use are declared before it."""
    others = [source for other, source in libraries.items() if other != library]
    used = set(NAME.findall("\n".join([*others, body])))
    shown = [f"begin_{library}"]

    def opened(match: re.Match[str]) -> str:
        function, name, variables, value = match.groups()
        declared = [name] if function else variables.split(", ")
        if not used.intersection(declared) and declared != shown[:1]:
            return match[0]
        shown.extend(set(declared) - set(shown))
        return f"function {name}" if function else f"{variables} =" if value == " =" else ""

    source = DECLARATION.sub(opened, libraries[library])
    return f"local {', '.join(sorted(shown))}\ndo\n{source}end\n"


def _only_what_is_used(libraries: dict[str, str], body: str) -> dict[str, str]:
    """Libraries without the functions this act never reaches: a file may have two hundred names."""
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
