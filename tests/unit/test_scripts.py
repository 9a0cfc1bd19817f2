"""The Lua acts and their headers: an act takes and returns what its header declares."""

import re
from functools import cache

from fairlead.store.keys import ALL, key_functions
from fairlead.store.scripts import (
    OPENING,
    act,
    edition,
    function_of,
    libraries,
    library,
    names,
    read_header,
    script,
)
from tests.headers import LUA, header, names_in_header, source

FILES = [*names(), *(f"lib/{name}" for name in libraries())]
FLAGS = {"allow-oom", "no-writes"}
PURPOSE = r"-- [A-Z].*(\n-- .*)*[.:]\n"  # a sentence or two


@cache
def body(name: str) -> str:
    """The file without its comments."""
    return re.sub(r"--[^\n]*", "", source(name))


def shared() -> list[tuple[str, str]]:
    """What the prelude lists: the file that defines a function, and the bare name by which all know it."""
    lists = re.findall(r"^local ([\w, ]+) -- (\w+)$", source("lib/prelude"), re.M)
    return [(f"lib/{file}", name) for listed, file in lists for name in listed.split(", ")]


def replies(name: str) -> list[str]:
    """The maps that a file returns, as they are written there."""
    text, found = body(name), []
    for match in re.finditer(r"\{\s*answer = ", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.start() : end])
    return found


def words_answered(name: str) -> set[str]:
    """The words an act answers with, itself or by `refused`, which it asks about a report."""
    words = {word for reply in replies(name) for word in re.findall(r'answer = [^,}]*"(\w+)"', reply)}
    if "endings.refused(" in body(name):
        refused = source("lib/endings").partition("function endings.refused(")[2].partition("\nend")[0]
        words |= set(re.findall(r'"(\w+)"(?= end|\n| or nil)', refused))
    return words


def names_answered(name: str) -> set[str]:
    """The keys of the maps it returns, except `answer`, which all of them have."""
    return {key for reply in replies(name) for key in re.findall(r"(?<![\w.])(\w+) = ", reply)} - {"answer"}


# The loader


def test_a_header_is_read_up_to_the_first_line_of_code() -> None:
    lines = ["-- What it does.", "--", "-- ARGV     a b", "--          c", "-- FLAGS    allow-oom"]
    text = "\n".join([*lines, "local x", "-- ARGV     d"])
    assert read_header(text) == {"ARGV": ("a", "b", "c"), "FLAGS": ("allow-oom",)}


def test_a_file_without_a_header_has_none() -> None:
    assert read_header("return 1\n-- ARGV meta\n") == {}


def test_all_files_are_acts() -> None:
    assert names() == sorted(path.stem for path in LUA.glob("*.lua"))


def test_an_act_is_a_function_of_its_arguments() -> None:
    assert act("cancel").arguments == ("id", "clock")
    assert act("cancel").function.startswith("function run.cancel(id, clock)\n")


UNGUARDED = {"accept", "configure", "migrate", "restore", "seal"}


def test_an_act_begins_by_checking_that_the_namespace_is_open_unless_its_guard_says_otherwise() -> None:
    refusal = "\nif not now then return acts.closed() end\n"
    assert f"\nlocal now = acts.begin(clock){refusal}" in act("cancel").function
    assert f'\nlocal now = acts.begin(""){refusal}' in act("elect").function
    assert {name for name in names() if refusal not in act(name).function} == UNGUARDED
    assert act("configure").guard == act("migrate").guard == "epoch"


def test_the_flags_go_to_the_server() -> None:
    assert script("cancel")[0].startswith("#!lua flags=allow-oom\n")
    assert script("submit")[0].startswith("#!lua flags=\n")
    assert "flags = {'allow-oom'}" in act("cancel").registration


def test_another_way_to_call_the_server_is_the_only_way() -> None:
    text, digest = script("submit", "counted_call")
    assert "  call = counted_call\n" in text
    assert re.findall(r"redis\.p?call", re.sub(r"--[^\n]*", "", text)) == []
    assert digest != script("submit")[1]


def test_every_act_is_in_the_one_library_and_known_by_the_files_it_is_made_of() -> None:
    assert re.fullmatch(r"fairlead_[0-9a-f]{16}", edition())
    assert library().startswith(f"#!lua name={edition()}\n")
    for name in names():
        assert f"function_name = '{function_of(name)}'" in library()


def test_a_library_is_included_once_after_the_prelude() -> None:
    starts = [library().index(source(f"lib/{name}")) for name in ["prelude", *libraries()]]
    assert starts == sorted(starts)
    assert all(library().count(source(f"lib/{name}")) == 1 for name in libraries())


def test_the_key_table_is_given_to_the_acts_as_functions() -> None:
    assert 'function keys.task(id) return prefix .. "task:" .. id end' in key_functions()
    assert '  keys.meta = prefix .. "meta"' in key_functions()


# Every act


def test_a_header_says_what_the_act_does_takes_and_returns() -> None:
    for name in names():
        assert re.match(PURPOSE, source(name)), name
        assert {"ARGV", "RETURNS"} <= header(name).keys(), name
        assert set(header(name).get("FLAGS", ())) <= FLAGS, name


def test_arguments_are_plain_names_and_all_of_them_are_used() -> None:
    for name in names():
        arguments = header(name)["ARGV"]
        assert len(set(arguments)) == len(arguments), name
        assert [
            a
            for a in arguments
            if not re.fullmatch(r"[a-z_]+", a) or not re.search(rf"\b{a}\b", body(name) + OPENING)
        ] == [], name


def test_the_clock_is_the_last_argument_of_every_act_that_has_it() -> None:
    for name in names():
        assert "clock" not in header(name)["ARGV"][:-1], name


def test_the_header_lists_every_word_it_answers() -> None:
    for name in names():
        assert act(name).guard != "open" or "uninitialised" in names_in_header(name), name
        assert words_answered(name), f"{name} answers with no map"
        assert sorted(words_answered(name) - names_in_header(name)) == [], name


def test_the_header_lists_every_name_in_its_answer() -> None:
    for name in names():
        assert sorted(names_answered(name) - names_in_header(name)) == [], name


def test_the_header_of_an_act_that_submits_lists_every_name_that_submitting_answers_with() -> None:
    for name in ["submit", "tick"]:
        for library_of in ("lib/submits", "lib/admission", "lib/types"):
            assert words_answered(library_of)
            assert words_answered(library_of) | names_answered(library_of) <= names_in_header(name), name


def test_no_answer_is_a_list_of_words() -> None:
    """Readers would have to know their order."""
    for file in FILES:
        assert re.findall(r'return \{"\w+"', body(file)) == [], file


# Every file


def test_no_key_is_named_that_the_table_does_not_know() -> None:
    known = {key.name for key in ALL} | {"prefix", "name"}
    for name in FILES:
        assert set(re.findall(r"\bkeys\.(\w+)", body(name))) <= known, name


def test_every_name_of_a_library_is_there_and_is_used() -> None:
    tables = set(libraries())
    defined: set[tuple[str, str]] = set()
    used: set[tuple[str, str]] = set()
    for name in FILES:
        defined |= set(re.findall(r"function (\w+)\.(\w+)", body(name)))
        for line in re.findall(r"^((?:\w+\.\w+, )*\w+\.\w+) = ", body(name), re.M):
            defined |= {
                (table, member) for table, _, member in (one.partition(".") for one in line.split(", "))
            }
        code = re.sub(r'"[^"\n]*"|^function \w+\.\w+|^(?:\w+\.\w+, )*\w+\.\w+ = ', "", body(name), flags=re.M)
        used |= {pair for pair in re.findall(r"(?<![\w.])(\w+)\.(\w+)", code) if pair[0] in tables}
    defined = {pair for pair in defined if pair[0] in tables}
    assert sorted(used - defined) == []
    by_every_act = {
        ("acts", "new"),
        ("acts", "begin"),
        ("acts", "closed"),
        ("epochs", "refusal"),
        ("epochs", "mark"),
    }
    assert sorted(defined - used - by_every_act) == []


def test_no_library_or_shared_function_is_hidden_by_a_variable_of_its_name() -> None:
    tables = {*libraries(), "keys", "act", *(shared_name for _, shared_name in shared())}
    declared = re.compile(
        r"local (?!function)([\w, ]+?)(?: =|\n)|function[ \w.]*\(([^)]*)\)|for ([\w, ]+) in"
    )
    for name in FILES:
        found = {
            word for match in declared.findall(body(name)) for word in re.findall(r"\w+", ",".join(match))
        }
        assert not found & tables, name
    for name in names():
        assert not set(header(name)["ARGV"]) & tables, name


def test_a_library_says_what_it_is_for() -> None:
    for name in libraries():
        assert re.match(PURPOSE, source(f"lib/{name}")), name


def test_the_names_in_the_prelude_are_defined_where_it_says_and_used_elsewhere() -> None:
    defined = [(file, name) for file in FILES for name in re.findall(r"^function (\w+)\(", body(file), re.M)]
    assert sorted(shared()) == sorted(defined)
    for file, name in shared():
        assert any(re.search(rf"(?<![\w.]){name}\(", body(other)) for other in set(FILES) - {file}), name


def test_nothing_is_left_global_and_a_library_keeps_nothing_between_calls() -> None:
    for name in FILES:
        assert not re.findall(r"^(\w+) = ", body(name), re.M), name
    for name in libraries():  # constants, and functions of other libraries
        for variables, value in re.findall(r"^local ([a-z]\w*(?:, \w+)*) = (.*)$", body(f"lib/{name}"), re.M):
            assert re.fullmatch(r"(\w+\.\w+, )*\w+\.\w+", value), (name, variables)


def test_only_the_views_write_cached_fields_of_a_hash() -> None:
    """An empty one is the same table for all of them, and for the next call too."""
    for name in set(FILES) - {"lib/hashes"}:
        assert not re.findall(r"\bknown(?:\[[^]]*\]|\.\w+) = ", body(name)), name
