"""Reads the Lua acts. The header of a file is its signature; its arguments are the parameters of a function.

    -- Purpose, in a sentence.
    --
    -- ARGV     worker want clock
    -- RETURNS  ok alarm? tasks {id fields}... | unknown_worker
    -- FLAGS    allow-oom

An act replies with one map: `answer` is a word, and what follows a word are the other keys that come with it;
one with a question mark may be absent. A row of a list is a map too. The reply is packed (msgpack) when the
act has ended: one string costs the server less than many elements. Any of them may have `lost_runs`: the runs
that it ended because nobody will report on them; and `transitions`, if they are to be logged.

`FLAGS` goes to the server: an act that ends work runs even when memory is full.

Before the arguments of an act its caller names the epoch that it has joined and the highest beat that it has
seen: other or older data is refused (`lib/epochs.lua`). Then the namespace must be open: if it is not, the
act answers `uninitialised`, or `too_new` if a newer version has migrated it; otherwise `now` is its instant,
by the clock of the server unless a test passes a `clock`. With `GUARD epoch` in its header an act also runs
when the namespace is not open, with `GUARD off` on any data.

All acts are one library that the server keeps: the files of `lua/lib/`, each a table of functions
(`limits.room`), and the acts, each one function. Functions that nearly every file uses have no table (`get`):
`lua/lib/prelude.lua` lists them. The state of a call is one table, made when it begins; nothing is carried
over from one call to the next. Where the server may not keep functions, an act is sent as a script with the
same text before it.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fairlead.store.keys import key_functions

HEADER = re.compile(r"^-- (ARGV|RETURNS|FLAGS|GUARD)\s+(.*)$")
STORE = files("fairlead.store")
ACTS = STORE / "lua"
LIBRARIES = "fairlead_"  # how the names of all functions begin
OPENING = "local now = acts.begin({clock})\nif not now then return acts.closed() end\n"
SCHEMA = 6  # of what a namespace keeps; acts refuse a newer one


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...]
    guard: str  # open, epoch or off
    body: str

    @property
    def function(self) -> str:
        clock = "clock" if "clock" in self.arguments else '""'
        opening = OPENING.format(clock=clock) if self.guard == "open" else ""
        return f"function run.{self.name}({', '.join(self.arguments)})\n{opening}{self.body}end\n"

    @property
    def call(self) -> str:
        return f"perform(run.{self.name}, KEYS[1], ARGV, {'false' if self.guard == 'off' else 'true'})"

    @property
    def registration(self) -> str:
        flags = ", ".join(f"'{flag}'" for flag in self.flags)
        callback = f"function(KEYS, ARGV) return {self.call} end"
        name = f"function_name = '{function_of(self.name)}'"
        return f"redis.register_function{{{name}, callback = {callback}, flags = {{{flags}}}}}\n"


@cache
def edition() -> str:
    """The name of the library made of these very files: a server may serve several versions at once."""
    return LIBRARIES + hashlib.sha1(_program(names()).encode()).hexdigest()[:16]


@cache
def function_of(name: str) -> str:
    """What the server knows the act by."""
    return f"{edition()}_{name}"


@cache
def library() -> str:
    """Every act, for `FUNCTION LOAD`."""
    registrations = "".join(act(name).registration for name in names())
    return f"#!lua name={edition()}\n{_program(names())}{registrations}"


@cache
def script(name: str, call: str = "redis.call") -> tuple[str, str]:
    """One act for `EVAL`, and its digest. `call` speaks to the server; a fault test gives another."""
    header = f"#!lua flags={','.join(act(name).flags)}\n"
    text = f"{header}{_program([name], call)}return {act(name).call}\n"
    return text, hashlib.sha1(text.encode()).hexdigest()


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


def libraries() -> list[str]:
    return sorted({entry.name.removesuffix(".lua") for entry in (ACTS / "lib").iterdir()} - {"prelude"})


@cache
def act(name: str) -> Act:
    body = _text(name)
    header = read_header(body)
    guard = header.get("GUARD", ("open",))[0]
    return Act(name, header.get("ARGV", ()), header.get("FLAGS", ()), guard, body)


def _program(acts: list[str], call: str = "redis.call") -> str:
    """The libraries, each a table that all of them see, and these acts as functions of `run`."""
    tables = libraries()
    return "".join(
        [
            _text("lib/prelude"),
            key_functions(),
            f"local SCHEMA = {SCHEMA}\n",
            f"local {', '.join(tables)} = {', '.join('{}' for _ in tables)}\n",
            *(f"do\n{_text(f'lib/{name}')}end\n" for name in tables),
            "local run = {}\n",
            *(act(name).function for name in acts),
            _perform(call),
        ]
    )


def _perform(call: str) -> str:
    """What every act begins and ends with."""
    return (
        "local function perform(chosen, meta, arguments, guarded)\n  if not string then bind() end\n"
        f"  call = {call}\n  keys.name(meta)\n  acts.new()\n"
        "  local refused = guarded and epochs.refusal(arguments[1], arguments[2])\n"
        "  local answer = refused or chosen(unpack(arguments, 3))\n"
        "  if act.is_committed and act.lost_runs[1] then answer.lost_runs = act.lost_runs end\n"
        "  if act.is_committed and act.transitions[1] then answer.transitions = act.transitions end\n"
        "  return cmsgpack.pack(epochs.mark(answer, arguments[1]))\nend\n"
    )


@cache
def _text(name: str) -> str:
    return (ACTS / f"{name}.lua").read_text()
