"""Nonsense in any section is refused, with what wrote it: a line of the file, or a variable."""

from pathlib import Path

import msgspec
import pytest

from fairlead.errors import InvalidSettings
from fairlead.settings import Settings
from fairlead.settings.base import Section
from fairlead.settings.loading import load_settings
from fairlead.settings.tiers import Tier


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str = "", **env: str) -> Settings:
    Path("some.toml").write_text(text)
    return load_settings(Path("some.toml"), env)


def refusal(text: str = "", **env: str) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load(text, **env)
    return caught.value.message


#: Sections whose keys are names that the user chooses: a table under such a name has known keys.
ENTRIES = {
    "tasks": "[tasks.x]",
    "services": "[services.x]",
    "tiers": "[tiers.x]",
    "namespaces": "[namespaces.x]",
}
FREE = ("limits", "pipelines")


def test_an_unknown_key_of_any_section_is_refused_with_its_line(subtests: pytest.Subtests) -> None:
    for section in msgspec.structs.fields(Settings):
        if section.name not in FREE:
            with subtests.test(section=section.name):
                found = refusal(f"{ENTRIES.get(section.name, f'[{section.name}]')}\nnonsense_ = 1")
                assert ".nonsense_: unknown key; " in found
                assert found.endswith("(from some.toml, line 2)")


def test_a_value_of_the_wrong_type_is_refused_in_any_section(subtests: pytest.Subtests) -> None:
    for section in msgspec.structs.fields(Settings):
        value = getattr(Settings(), section.name)
        keys = value.__struct_fields__ if isinstance(value, Section) else ("x",)
        for key in keys:
            with subtests.test(section=section.name, key=key):
                found = refusal(f"[{section.name}]\n{key} = 1979-05-27")
                assert found.startswith(f"{section.name}.{key}: expected ")
                assert found.endswith("(from some.toml, line 2)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tiers]\nfast = 3", "tiers.fast: expected a table, not 3"),
        ("[tiers]\nfast = {}", "tiers.fast: seconds is missing: say how long"),
        ("[tiers]\nfast = { limit = 1 }", "tiers.fast: seconds is missing: say how long"),
        ("[tiers]\nfast = { seconds = 0 }", "tiers.fast.seconds: expected a number greater than 0, not 0"),
        (
            "[tiers]\nfast = { second = 3 }",
            "tiers.fast.second: unknown key; did you mean tiers.fast.seconds?",
        ),
        (
            '[tiers]\nslow = { seconds = 3, limit = "half" }',
            'tiers.slow.limit: expected a share such as "50%"',
        ),
        ('[tiers]\nslow = { seconds = 3, limit = "0%" }', 'tiers.slow.limit: expected a share such as "50%"'),
        ("[tiers]\nslow = { seconds = 3, limit = 0 }", 'tiers.slow.limit: expected a share such as "50%"'),
        (
            "[tiers]\ninteractive = { seconds = 3 }",
            "tiers.interactive: 'interactive' is a duration of its own",
        ),
        ('[tiers]\n"a b" = { seconds = 3 }', "tiers.a b: use 1 to 200 of"),
        ('[tiers]\nvictim = "oldest"', 'tiers.victim: expected one of "youngest", "random", not "oldest"'),
        ("[engine]\nreplicas = 1", "engine: replicas: the embedded server has none: set url too"),
        ('[history]\nurl = "nonsense"', "history: url must be sqlite:///PATH or postgresql://HOST/NAME"),
        ('[history]\nurl = "mysql://h/db"', "history: url must be sqlite:///PATH or postgresql://HOST/NAME"),
        ('[history]\nurl = "postgres://h/db"', "history: url begins with postgres://: write postgresql://"),
        (
            '[history]\nurl = "postgresql+psycopg://h"',
            "history: url begins with postgresql+psycopg://: write",
        ),
        ('[history]\nurl = "sqlite://"', "history: url names no file: expected sqlite:///PATH"),
        ('[history]\nurl = "sqlite://h.db"', "history: url names no file: expected sqlite:///PATH"),
        ('[history]\nurl = "postgresql://"', "history: url names no database"),
        ('[history]\nurl = "postgresql://h:x/db"', "history: url is not an address"),
        ("[history]\nkeep_days = 0", "history.keep_days: expected a whole number of at least 1, not 0"),
        ("[history]\nenabled = 1", "history.enabled: expected true or false, not 1"),
        ('[engine]\nnamespace = "a b"', "engine: namespace: use 1 to 64 of"),
        (
            '[tasks.t]\nrequired_capabilities = ["a b"]',
            "tasks.t: required_capabilities: use 1 to 200 of",
        ),
        ('[tasks.t.limits]\n"a b" = 1', "tasks.t.limits.a b: use 1 to 200 of"),
        ("[tasks.t]\nmax_retries = 1001", "tasks.t.max_retries: expected a whole number from 0 to 1000"),
        (
            "[retention]\nmax_dead = 1000000000001",
            "retention.max_dead: expected a number of at most 10000000",
        ),
        (
            "[promotion]\nlow_to_medium_seconds = 1e300",
            "promotion.low_to_medium_seconds: expected a number of",
        ),
        ("[limits]\nx = 1000000001", "limits.x: expected a number of slots, or a rate"),
        ("[lease]\nlease_seconds = 10", "settings: a lease "),
        (
            "[estimates]\nenabled = false\n[admission.max_wait_seconds]\nlow = 1",
            "settings: admission.max_wait_seconds needs estimates",
        ),
        ("[limits]\ngpu = 8\n[tasks.t]\nlimits.gpu = 24", "settings: tasks.t.limits.gpu: 24 units are more"),
    ],
)
def test_nonsense_is_refused_with_its_line(text: str, message: str) -> None:
    found = refusal(text)
    assert found.startswith(message)
    assert "(from some.toml, line " in found


def test_tiers_and_history_are_read() -> None:
    settings = load(
        '[tiers]\nfast = { seconds = 3 }\nmedium = { seconds = 10, limit = "50%" }\n'
        'slow = { seconds = 30, limit = 1 }\nvictim = "random"\n'
        '[history]\nurl = "sqlite:////var/lib/h.sqlite3"\nenabled = false\nkeep_days = 7'
    )
    assert settings.tiers == {
        "fast": Tier(seconds=3),
        "medium": Tier(seconds=10, limit="50%"),
        "slow": Tier(seconds=30, limit=1),
        "victim": "random",
    }
    assert (settings.history.url, settings.history.enabled, settings.history.keep_days) == (
        "sqlite:////var/lib/h.sqlite3",
        False,
        7,
    )


def test_the_password_of_a_database_is_not_repeated() -> None:
    assert "hunter2" not in refusal(DATABASE_URL="mysql://user:hunter2@h/db")


#: A file that is right by itself, with a heading for each section and keys beside those of the variables.
BESIDE = """
[worker]
capacity = 5
[promotion]
low_to_medium_seconds = 600
[retry]
max_seconds = 5
[lease]
[history]
[limits]
gpu = 8
[tiers]
[services.x]
url = "http://h/"
[tasks.t]
limits = { gpu = 1 }
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HIGH_PRIORITY_RESERVED", "9"),
        ("MAX_CONCURRENT_TASKS", "0"),
        ("MAX_CONCURRENT_TASKS", "many"),
        ("PROMOTE_LOW_TO_MEDIUM_AFTER", "soon"),
        ("DATABASE_URL", "nonsense"),
        ("REDIS_URL", "nonsense"),
        ("PRIORITY_API_URL", "nonsense"),
        ("FAIRLEAD_WORKER__CAPCITY", "5"),
        ("FAIRLEAD_WROKER__CAPACITY", "5"),
        ("FAIRLEAD_WORKER__", "5"),
        ("FAIRLEAD_RETRY__BASE_SECONDS", "10"),
        ("FAIRLEAD_LEASE__LEASE_SECONDS", "1"),
        ("FAIRLEAD_LIMITS__GPU", "none"),
        ("FAIRLEAD_LIMITS__API", '{ rate = "1/s", brust = 3 }'),
        ("FAIRLEAD_TIERS__FAST", "{ seconds = 0 }"),
        ("FAIRLEAD_SERVICES__X__URL", "nonsense"),
        ("FAIRLEAD_SERVICES__X", "{ limit = 0 }"),
        ("FAIRLEAD_TASKS__T__LIMITS__GPU", "0"),
        ("FAIRLEAD_PIPELINES__P", "[]"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable_and_no_line_of_the_file(name: str, text: str) -> None:
    load(BESIDE)
    found = refusal(BESIDE, **{name: text})
    assert found.endswith(f"(from {name})") or f"(from {name} and some.toml" in found


def test_a_contradiction_names_everything_that_brought_it() -> None:
    assert refusal("[worker]\ncapacity = 4", HIGH_PRIORITY_RESERVED="9").endswith(
        "(from HIGH_PRIORITY_RESERVED and some.toml, line 2)"
    )
    assert refusal("[worker]\nheartbeat_seconds = 40", FAIRLEAD_LEASE__LEASE_SECONDS="3").endswith(
        "(from FAIRLEAD_LEASE__LEASE_SECONDS and some.toml, line 2)"
    )
