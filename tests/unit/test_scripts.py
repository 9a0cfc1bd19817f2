"""The Lua acts and their headers: what a header says is what the act takes and answers."""

import re
from functools import cache
from pathlib import Path

import pytest

import fairlead.store
from fairlead.store.keys import ALL
from fairlead.store.scripts import function_of, load, names, read_header

LUA = Path(fairlead.store.__file__).parent / "lua"
LIBRARIES = sorted(path.stem for path in (LUA / "lib").glob("*.lua"))
FILES = [*names(), *(f"lib/{library}" for library in LIBRARIES)]
FLAGS = {"allow-oom", "no-writes"}
PURPOSE = r"-- [A-Z].*(\n-- .*)*\.\n--\n"  # a sentence or two


@cache
def source(name: str) -> str:
    return (LUA / f"{name}.lua").read_text()


@cache
def header(name: str) -> dict[str, tuple[str, ...]]:
    return read_header(source(name))


def body(name: str) -> str:
    """The act without its header and its comments."""
    return re.sub(r"--[^\n]*", "", source(name))


def used_by(name: str) -> set[str]:
    """The libraries an act includes, with those they include."""
    found: set[str] = set()
    waiting = list(header(name)["USES"])
    while waiting:
        library = waiting.pop()
        if library not in found:
            found.add(library)
            waiting += header(f"lib/{library}").get("USES", ())
    return found


def words_answered(name: str) -> set[str]:
    """The first words of the answers an act gives, itself or by `refused`, which it asks about a report."""
    act = body(name)
    words = set(re.findall(r'return \{"(\w+)"', act))
    words |= set(re.findall(r'answers\[i\] = (?:[^{\n]*)\{"(\w+)"', act))
    if "refused(" in act:
        refused = source("lib/endings").partition("local function refused(")[2].partition("\nend")[0]
        words |= set(re.findall(r'"(\w+)"(?= end|\n| or nil)', refused))
    return words


# The loader


def test_a_header_is_read_up_to_the_first_line_of_code() -> None:
    lines = [
        "-- What it does.",
        "--",
        "-- KEYS     meta",
        "-- ARGV     a b",
        "--          c",
        "-- USES     one two",
    ]
    text = "\n".join([*lines, "local x", "-- ARGV     d"])
    assert read_header(text) == {"KEYS": ("meta",), "ARGV": ("a", "b", "c"), "USES": ("one", "two")}


def test_a_file_without_a_header_has_none() -> None:
    assert read_header("return 1\n-- KEYS meta\n") == {}


def test_all_files_are_acts() -> None:
    assert names() == sorted(path.stem for path in LUA.glob("*.lua"))


def test_an_act_is_loaded_with_its_arguments_as_named_locals() -> None:
    script = load("cancel")
    assert script.arguments == ("id", "clock")
    assert "  id = ARGV[1]\n  clock = ARGV[2]\n" in script.program
    assert re.match(r"local call, .*\bid, clock\n", script.program)


def test_the_flags_go_to_the_server_in_the_first_line() -> None:
    assert load("cancel").text.startswith("#!lua flags=allow-oom\n")
    assert load("submit").text.startswith("#!lua flags=\n")


def test_an_act_is_known_by_the_digest_of_its_text() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", load("cancel").sha)
    assert load("cancel") is load("cancel")
    assert load("cancel").sha != load("cancel", "other_call").sha


def test_another_way_to_call_the_server_is_the_only_way() -> None:
    text = load("submit", "counted_call").text
    assert "  call = counted_call\n" in text
    assert re.findall(r"redis\.p?call", text) == []


def test_keys_are_written_out_from_the_one_key_every_script_is_given() -> None:
    text = load("cancel").text
    assert "string.sub(KEYS[1], 1, -5)" in text  # what is left without "meta"
    assert 'prefix .. "task:" ..' in text
    assert 'meta_key = prefix .. "meta"' in text
    assert "task_key(" not in text


def test_what_a_library_knows_of_a_call_is_set_when_the_next_begins() -> None:
    program = load("submit").program
    assert "local hash_views, changed_hashes\n" in program
    assert "local function begin_hashes()\n  hash_views, changed_hashes = {}, {}\n" in program
    assert "local function begin_begin()\n  meta = hash(meta_key)\n  instant = nil\n" in program
    assert "local MOST_SIGNATURES = 1024\n" in program


def test_a_function_is_known_by_the_files_it_is_made_of() -> None:
    assert re.fullmatch(r"fairlead_[0-9a-f]{16}_cancel", function_of("cancel"))
    assert load("cancel").function.startswith(f"#!lua name={function_of('cancel')}\n")
    assert "flags = {'allow-oom'}" in load("cancel").function


# Every act


@pytest.mark.parametrize("name", names())
def test_nothing_is_kept_from_one_call_to_the_next(name: str) -> None:
    before_the_act = load(name).program.partition("\nlocal function act()\n")[0]
    variables = re.findall(r"^local ([a-z_]\w*(?:, \w+)*) = .*$", before_the_act, re.M)
    assert variables == ["run"]


@pytest.mark.parametrize("name", names())
def test_a_header_says_what_it_does_takes_answers_and_uses(name: str) -> None:
    assert re.match(PURPOSE, source(name))
    assert {"KEYS", "ARGV", "RETURNS", "USES"} <= header(name).keys()
    assert header(name)["KEYS"] == ("meta",)
    assert set(header(name).get("FLAGS", ())) <= FLAGS


@pytest.mark.parametrize("name", names())
def test_arguments_are_plain_names_and_all_of_them_are_used(name: str) -> None:
    arguments = header(name)["ARGV"]
    assert len(set(arguments)) == len(arguments)
    assert [
        a for a in arguments if not re.fullmatch(r"[a-z_]+", a) or not re.search(rf"\b{a}\b", body(name))
    ] == []


@pytest.mark.parametrize("name", names())
def test_the_clock_is_the_last_argument_of_every_act_that_tells_the_time(name: str) -> None:
    if "begin(clock)" in body(name):
        assert header(name)["ARGV"][-1] == "clock"


@pytest.mark.parametrize("name", FILES)
def test_every_file_it_uses_is_there(name: str) -> None:
    assert [used for used in header(name).get("USES", ()) if used not in LIBRARIES] == []


@pytest.mark.parametrize("name", names())
def test_the_header_lists_every_word_it_answers(name: str) -> None:
    known = set(header(name)["RETURNS"])
    assert sorted(words_answered(name) - known) == []


@pytest.mark.parametrize("name", names())
def test_a_library_is_included_once_and_before_what_needs_it(name: str) -> None:
    text = load(name).text
    starts = {library: text.index(first_line(library)) for library in used_by(name)}
    for library, start in starts.items():
        assert text.count(first_line(library)) == 1
        assert all(starts[other] < start for other in header(f"lib/{library}").get("USES", ()))


def first_line(library: str) -> str:
    return source(f"lib/{library}").splitlines()[0]


@pytest.mark.parametrize("name", FILES)
def test_no_key_is_named_that_the_table_does_not_know(name: str) -> None:
    known = {f"{key.name}_key" for key in ALL}
    own = re.findall(r"\w+_key\b", " ".join(re.findall(r"local ([\w, ]+)", body(name))))
    assert set(re.findall(r"\b\w+_key\b", body(name))) <= known | set(own)


# Every library


def test_every_library_is_used() -> None:
    assert set().union(*(used_by(name) for name in names())) == set(LIBRARIES)


def test_no_library_needs_itself() -> None:
    def needs(library: str, path: tuple[str, ...] = ()) -> None:
        assert library not in path, " -> ".join([*path, library])
        for other in header(f"lib/{library}").get("USES", ()):
            needs(other, (*path, library))

    for library in LIBRARIES:
        needs(library)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_says_what_it_is_for(library: str) -> None:
    assert re.match(PURPOSE, source(f"lib/{library}"))


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_left_global(name: str) -> None:
    found = re.findall(r"^(?:function (\w+)|(\w+) = )", body(name), re.MULTILINE)
    locals_of_files = re.findall(
        r"^local ([\w, ]+)", "\n".join(source(f"lib/{x}") for x in LIBRARIES), re.MULTILINE
    )
    known = {word for line in locals_of_files for word in re.findall(r"\w+", line)}
    assert [function or variable for function, variable in found if function or variable not in known] == []


@pytest.mark.parametrize("name", [file for file in FILES if file not in ("lib/hashes", "lib/fields")])
def test_what_is_known_of_a_hash_is_set_by_the_views_alone(name: str) -> None:
    """An empty one is the same table for all of them, and for the next call too."""
    assert not re.findall(r"known(?:\[[^]]*\]|\.\w+) = ", body(name))
