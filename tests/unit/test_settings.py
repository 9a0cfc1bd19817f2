"""The configuration: defaults, sources of values, and the errors for wrong ones."""

from pathlib import Path

import pytest

from fairlead.errors import InvalidSettings
from fairlead.settings import (
    PriorityDefaults,
    PriorityServiceSettings,
    Rate,
    ServiceSettings,
    Settings,
    Slots,
)
from fairlead.settings.loading import load_client_settings, load_settings, read_settings
from fairlead.settings.rates import parse_rate

EXAMPLE = """
[priorities.high]
max_retries = 7
[promotion]
low_to_medium_seconds = 1800
medium_to_high_seconds = 3600
low_to_high_seconds = 3600
[worker]
capacity = 8
reserve = 2
[limits]
call_external_api = 10
gpu_memory_gb = 80
paused = 0
openai = { rate = "60/min", burst = 10 }
search = { rate = "10/s" }
[tasks.generate_image]
limits = { image_gen = 1, gpu_memory_gb = 24 }
required_capabilities = ["gpu"]
[tiers]
fast = { seconds = 3 }
[services.prompt_enhancer]
url = "http://127.0.0.1:9000/v1/execute"
[pipelines]
full_pipeline = ["prompt_enhancer", "image_gen"]
[priority_service]
fallback = "medium"
[fairness]
by = "tenant"
weights = { gold = 4, free = 0.5 }
plans = { pro = 3, free = 0.5 }
[admission]
max_queued = 10
"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str) -> Path:
    path = Path("some.toml")
    path.write_text(text)
    return path


def load(text: str = "", **env: str) -> Settings:
    return load_settings(written(text), env)


def refusal(text: str = "", **env: str) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load(text, **env)
    return caught.value.message


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load_settings(None, {})
    assert settings == Settings()
    assert settings.priorities.high == PriorityDefaults(max_retries=8, timeout_seconds=300)
    assert settings.priorities.medium == PriorityDefaults(max_retries=8, timeout_seconds=600)
    assert settings.priorities.low == PriorityDefaults(max_retries=8, timeout_seconds=900)
    assert settings.promotion.low_to_high == 1800
    assert (settings.lease_ms, settings.worker_ttl_ms, settings.lease.grace_seconds) == (30_000, 30_000, 1)
    assert settings.engine.durability == "always"
    assert settings.retention.dead_seconds == 30 * 24 * 3600


def test_a_file_sets_what_it_names_and_leaves_the_rest() -> None:
    settings = load(EXAMPLE)
    assert settings.priorities.high == PriorityDefaults(max_retries=7, timeout_seconds=300)
    assert settings.priorities.low == Settings().priorities.low
    assert settings.promotion.low_to_high == 3600
    assert settings.limits == {
        "call_external_api": Slots(limit=10),
        "gpu_memory_gb": Slots(limit=80),
        "paused": Slots(limit=0),
        "openai": Rate(count=60, period_seconds=60, burst=10),
        "search": Rate(count=10, period_seconds=1, burst=1),
    }
    assert settings.tasks["generate_image"].limits == {"image_gen": 1, "gpu_memory_gb": 24}
    assert settings.tasks["generate_image"].required_capabilities == ["gpu"]
    assert settings.fairness.weights == {"gold": 4.0, "free": 0.5}
    assert settings.fairness.plans == {"pro": 3.0, "free": 0.5}
    assert settings.pipelines == {"full_pipeline": (("prompt_enhancer",), ("image_gen",))}
    assert settings.services == {"prompt_enhancer": ServiceSettings(url="http://127.0.0.1:9000/v1/execute")}


def test_the_file_of_the_working_folder_is_read_if_it_is_there() -> None:
    assert load_settings(None, {}).worker.capacity == 5
    Path("fairlead.toml").write_text("[worker]\ncapacity = 9")
    assert load_settings(None, {}).worker.capacity == 9


def test_the_environment_overrides_the_file_and_options_override_both() -> None:
    path = written("[worker]\ncapacity = 8\nreserve = 2")
    env = {"FAIRLEAD_WORKER__CAPACITY": "9"}
    assert load_settings(path, env).worker.capacity == 9
    assert load_settings(path, env).worker.reserve == 2
    options = {"worker.capacity": ("--capacity", "10")}
    assert load_settings(path, env, options).worker.capacity == 10


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MAX_CONCURRENT_TASKS", "12", lambda s: s.worker.capacity == 12),
        ("HIGH_PRIORITY_RESERVED", "3", lambda s: s.worker.reserve == 3),
        ("PROMOTE_LOW_TO_MEDIUM_AFTER", "60", lambda s: s.promotion.low_to_medium_seconds == 60),
        ("PROMOTE_MEDIUM_TO_HIGH_AFTER", "90.5", lambda s: s.promotion.medium_to_high_seconds == 90.5),
        ("REDIS_URL", "redis://h:1/0", lambda s: s.engine.url == "redis://h:1/0"),
        ("DATABASE_URL", "postgresql://h/db", lambda s: s.history.url == "postgresql://h/db"),
        (
            "PRIORITY_API_URL",
            "http://h/{user_id}",
            lambda s: s.priority_service == PriorityServiceSettings(url="http://h/{user_id}"),
        ),
        ("FAIRLEAD_PRIORITIES__HIGH__MAX_RETRIES", "0", lambda s: s.priorities.high.max_retries == 0),
        ("FAIRLEAD_LIMITS__OPENAI", '{ rate = "5/h" }', lambda s: s.limits["openai"].period_seconds == 3600),
        ("FAIRLEAD_LIMITS__GPU", "4", lambda s: s.limits["gpu"] == Slots(limit=4)),
        ("FAIRLEAD_ENGINE__NAMESPACE", "2026", lambda s: s.engine.namespace == "2026"),
        ("FAIRLEAD_ENGINE__DURABILITY", "everysec", lambda s: s.engine.durability == "everysec"),
        ("FAIRLEAD_FAIRNESS__WEIGHTS", "{ gold = 3 }", lambda s: s.fairness.weights == {"gold": 3.0}),
    ],
)
def test_the_environment_sets(name: str, text: str, value: object) -> None:
    assert callable(value)
    assert value(load("", **{name: text}))


@pytest.mark.parametrize(
    ("env", "low_to_high"),
    [
        ({}, 1800),
        ({"FAIRLEAD_PROMOTION__MEDIUM_TO_HIGH_SECONDS": "3600"}, 4200),
        ({"PROMOTE_MEDIUM_TO_HIGH_AFTER": "3600"}, 3600),
        ({"PROMOTE_LOW_TO_MEDIUM_AFTER": "1800", "PROMOTE_MEDIUM_TO_HIGH_AFTER": "3600"}, 3600),
        ({"PROMOTE_LOW_TO_MEDIUM_AFTER": "1800", "PROMOTE_MEDIUM_TO_HIGH_AFTER": "60"}, 1800),
        ({"PROMOTE_MEDIUM_TO_HIGH_AFTER": "0"}, 0),
        ({"PROMOTE_MEDIUM_TO_HIGH_AFTER": "3600", "FAIRLEAD_PROMOTION__LOW_TO_HIGH_SECONDS": "900"}, 900),
        (
            {"PROMOTE_MEDIUM_TO_HIGH_AFTER": "3600", "FAIRLEAD_PROMOTION__MEDIUM_TO_HIGH_SECONDS": "60"},
            660,
        ),
    ],
)
def test_the_familiar_promotion_counts_from_the_submit(env: dict[str, str], low_to_high: float) -> None:
    assert load("", **env).promotion.low_to_high == low_to_high


def test_what_is_never_promoted_to_high_is_not_promoted_by_two_steps_either() -> None:
    assert load("[promotion]\nmedium_to_high_seconds = 0").promotion.low_to_high == 0
    assert load("[promotion]\nlow_to_high_seconds = 0").promotion.low_to_high == 0


def test_fairleads_own_name_wins_over_the_familiar_one() -> None:
    settings = load("", REDIS_URL="redis://other", FAIRLEAD_ENGINE__URL="redis://mine")
    assert settings.engine.url == "redis://mine"


def test_empty_variables_and_those_of_other_uses_are_not_settings() -> None:
    env = {
        "REDIS_URL": "",
        "FAIRLEAD_WORKER__CAPACITY": " ",
        "FAIRLEAD_URL": "http://x",
        "FAIRLEAD_SERVER_BIN": "y",
    }
    assert load("", **env) == Settings()


def test_a_limit_is_replaced_as_a_whole() -> None:
    file = '[limits]\nopenai = { rate = "60/min", burst = 10 }\nsearch = 5'
    settings = load(file, FAIRLEAD_LIMITS__OPENAI="{ limit = 3 }", FAIRLEAD_LIMITS__SEARCH='{ rate = "1/s" }')
    assert settings.limits["openai"] == Slots(limit=3)
    assert settings.limits["search"] == Rate(count=1, period_seconds=1, burst=1)


def test_an_unknown_key_is_refused_with_the_nearest_known_one(subtests: pytest.Subtests) -> None:
    for text, message in [
        (
            "[worker]\ncapcity = 5",
            "worker.capcity: unknown key; did you mean worker.capacity? (from some.toml, line 2)",
        ),
        ("[wroker]\ncapacity = 5", "wroker: unknown key; did you mean worker? (from some.toml, line 1)"),
        ("capacity = 5", "capacity: unknown key; did you mean worker.capacity? (from some.toml, line 1)"),
        (
            "[priorities.urgent]\nmax_retries = 1",
            "priorities.urgent: unknown key; known here: high, medium, low (from some.toml, line 1)",
        ),
        (
            '[limits]\nx = { rate = "1/s", brust = 3 }',
            "limits.x.brust: unknown key; did you mean limits.x.burst? (from some.toml, line 2)",
        ),
        (
            '[services.x]\nurl = "http://h/"\nheartbeat_seconds = 9',
            "services.x.heartbeat_seconds: unknown key; did you mean worker.heartbeat_seconds? "
            "(from some.toml, line 3)",
        ),
        (
            "[tasks.t]\nlimit = { a = 1 }",
            "tasks.t.limit: unknown key; did you mean tasks.t.limits? (from some.toml, line 2)",
        ),
    ]:
        with subtests.test(text=text, message=message):
            assert refusal(text) == message


def test_a_wrong_value_is_refused_with_its_key_and_what_is_expected(subtests: pytest.Subtests) -> None:
    for text, key, expected in [
        ("[worker]\ncapacity = 0", "worker.capacity", "a whole number of at least 1, not 0"),
        ('[worker]\ncapacity = "5"', "worker.capacity", 'a whole number of at least 1, not "5"'),
        ("[worker]\ncapacity = true", "worker.capacity", "a whole number of at least 1, not true"),
        ("[worker]\ncapacity = 1.5", "worker.capacity", "a whole number of at least 1, not 1.5"),
        ("worker = 5", "worker", "a table, not 5"),
        (
            "[priorities.low]\ntimeout_seconds = -1",
            "priorities.low.timeout_seconds",
            "a number greater than 0, not -1",
        ),
        (
            "[promotion]\nlow_to_medium_seconds = nan",
            "promotion.low_to_medium_seconds",
            "a finite number, not nan",
        ),
        (
            "[promotion]\nlow_to_high_seconds = -5",
            "promotion.low_to_high_seconds",
            "a number of at least 0, not -5",
        ),
        ("[retention]\ndead_seconds = inf", "retention.dead_seconds", "a finite number, not inf"),
        ("[tiers]\nfast = { seconds = nan }", "tiers.fast.seconds", "a finite number, not nan"),
        ('[fairness]\nby = "plan"', "fairness.by", 'one of "user_id", "tenant", not "plan"'),
        ("[fairness.plans]\npro = 0", "fairness.plans.pro", "a number from 0.01 to 1000.0, not 0"),
        ("[fairness.weights]\ngold = 0", "fairness.weights.gold", "a number greater than 0, not 0"),
        (
            '[engine]\ndurability = "no"',
            "engine.durability",
            'one of "always", "everysec", "ledger", not "no"',
        ),
        ("[engine]\nnamespace = 1", "engine.namespace", "a text, not 1"),
        (
            "[tasks.t]\nrequired_capabilities = 'gpu'",
            "tasks.t.required_capabilities",
            'a list of texts, not "gpu"',
        ),
        ("[tasks.t.limits]\ngpu = 0", "tasks.t.limits.gpu", "a whole number of at least 1, not 0"),
        ('[limits]\nx = { rate = "60" }', "limits.x.rate", 'a rate such as "60/min"'),
        ('[limits]\nx = { rate = "0/s" }', "limits.x.rate", 'a rate such as "60/min"'),
        (
            '[limits]\nx = { rate = "1/s", burst = 0 }',
            "limits.x.burst",
            "a whole number of at least 1, not 0",
        ),
        ("[limits]\nx = -1", "limits.x", "a number of slots, or a rate"),
        ("[limits]\nx = 1.5", "limits.x", "a number of slots, or a rate"),
        ("[limits]\nx = { burst = 1 }", "limits.x", "a number of slots, or a rate"),
        ('[limits]\nx = { limit = 1, rate = "1/s" }', "limits.x", "a number of slots, or a rate"),
    ]:
        with subtests.test(text=text, key=key, expected=expected):
            message = refusal(text)
            assert message.startswith(f"{key}: expected {expected}")
            assert message.endswith(f"(from some.toml, line {1 + text.count(chr(10))})")


def test_bad_names_and_values_that_contradict_each_other_are_refused(subtests: pytest.Subtests) -> None:
    for text, message in [
        ('[limits]\n"a b" = 1', "limits.a b: use 1 to 200 of A-Z"),
        ('[tasks."a/b"]\nlimits = {}', "tasks.a/b: use 1 to 200 of A-Z"),
        ("[worker]\ncapacity = 2\nreserve = 3", "worker: reserve (3) must not be more than capacity (2)"),
        ('[priority_service]\nurl = "ftp://h"', "priority_service: url must begin with http:// or https://"),
        (
            "[retry]\nbase_seconds = 10\nmax_seconds = 5",
            "retry: base_seconds must not be more than max_seconds",
        ),
        ("[promotion]\nlow_to_high_seconds = 5", "promotion: low_to_high_seconds must not be less than"),
        ("[lease]\nlease_seconds = 10", "settings: a lease"),
        ("[worker]\nmissed_heartbeats = 1", "settings: a lease"),
        (
            "[tasks.t]\nlease_seconds = 29",
            "settings: tasks.t.lease_seconds must not be less than 30 s, which is the lease of all tasks",
        ),
        (
            '[lease]\nlease_seconds = 60\n[services.x]\nurl = "http://h/"\nlease_seconds = 59',
            "settings: services.x.lease_seconds must not be less than 60 s",
        ),
        (
            "[limits]\ngpu = 8\n[tasks.t.limits]\ngpu = 24",
            "settings: tasks.t.limits.gpu: 24 units are more than",
        ),
    ]:
        with subtests.test(text=text, message=message):
            assert refusal(text).startswith(message)


def test_a_refusal_names_the_variable_that_brought_the_value() -> None:
    assert refusal(MAX_CONCURRENT_TASKS="many").endswith('not "many" (from MAX_CONCURRENT_TASKS)')
    assert refusal(FAIRLEAD_WORKER__CAPCITY="5") == (
        "worker.capcity: unknown key; did you mean worker.capacity? (from FAIRLEAD_WORKER__CAPCITY)"
    )


def test_a_file_that_cannot_be_read_is_refused() -> None:
    assert refusal("[worker").startswith("some.toml is not TOML: ")
    with pytest.raises(InvalidSettings, match=r"cannot read missing.toml: No such file"):
        load_settings(Path("missing.toml"), {})


def test_every_key_knows_what_set_it() -> None:
    path = written("[worker]\ncapacity = 8\n[limits]\ngpu = { limit = 1 }")
    _, sources = read_settings(path, {"REDIS_URL": "redis://h", "FAIRLEAD_WORKER__RESERVE": "1"})
    assert sources.names == {
        ("worker", "capacity"): "some.toml",
        ("limits", "gpu"): "some.toml",
        ("engine", "url"): "REDIS_URL",
        ("worker", "reserve"): "FAIRLEAD_WORKER__RESERVE",
    }


@pytest.mark.parametrize(
    ("text", "rate"),
    [("60/min", (60, 60)), ("10/s", (10, 1)), ("1000/h", (1000, 3600)), ("5 / day", (5, 86_400))],
)
def test_rates(text: str, rate: tuple[int, float]) -> None:
    assert parse_rate(text) == rate


def test_an_invalid_rate_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "60", "60/", "/min", "-1/s", "0/s", "1.5/s", "1/week", "1/s/s", "\u0661/s"]:
        with subtests.test(text=text), pytest.raises(ValueError, match="expected a rate such as"):
            parse_rate(text)


def test_a_namespace_has_settings_of_its_own() -> None:
    path = written(
        "[worker]\ncapacity = 9\n[limits]\ngpu = 1\n"
        "[namespaces.blue]\nlimits = { gpu = 2 }\n[namespaces.green]\n"
    )
    settings, sources = read_settings(path, {"FAIRLEAD_NAMESPACES__BLUE__PROMOTION__BUDGET": "7"})
    assert settings.served == ("default", "blue", "green")
    blue, green = settings.of_namespace("blue"), settings.of_namespace("green")
    assert (blue.limits, blue.promotion.budget, blue.worker.capacity) == ({"gpu": Slots(limit=2)}, 7, 5)
    assert (green.limits, green.worker.capacity, green.engine.namespace) == ({}, 5, "green")
    assert settings.of_namespace("default") == settings
    assert sources.of_namespace("blue").place(("limits", "gpu")) == "some.toml, line 6"
    env = {"FAIRLEAD_ENGINE__NAMESPACE": "blue"}
    assert load_settings(path, env).limits == {"gpu": Slots(limit=2)}
    assert "use 1 to 64 of" in refusal('[namespaces."a b"]\nlimits = {}')


@pytest.mark.parametrize(
    ("namespace", "key"), [("", "flk_b"), ("default", "flk_b"), ("red", "flk_a.red"), ("blue", "flk_a.red")]
)
def test_of_several_keys_a_client_uses_that_of_its_namespace(namespace: str, key: str) -> None:
    none = ("", "")
    options = {
        "engine.url": none,
        "engine.data": none,
        "engine.key": none,
        "engine.namespace": ("", namespace),
    }
    env = {"FAIRLEAD_URL": "http://127.0.0.1:8000", "FAIRLEAD_KEY": "flk_a.red,flk_b"}
    assert load_client_settings(None, env, options).engine.key == key
