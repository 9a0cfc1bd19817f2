"""[services] and [pipelines]: what may be written, and where a mistake is."""

from pathlib import Path

import pytest

from fairlead.errors import InvalidSettings
from fairlead.settings import ServiceSettings, Settings, Slots, TaskSettings
from fairlead.settings.loading import load_settings
from fairlead.settings.sources import line_of
from fairlead.settings.urls import url_problem

GOOD = """
[services.prompt_enhancer]
url = "http://127.0.0.1:9000/v1/execute"
limit = 5
timeout_seconds = 60
max_attempts = 4

[services.image_gen]
url = "https://gpu.example/v1"

[pipelines]
full = ["prompt_enhancer", { parallel = ["image_gen", "upscale"] }, "prompt_enhancer"]
short = ["upscale"]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("some.toml")


def load(file: Path, text: str, **env: str) -> Settings:
    file.write_text(text)
    return load_settings(file, env)


def refusal(file: Path, text: str, **env: str) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load(file, text, **env)
    return caught.value.message


def test_services_and_pipelines_are_read(file: Path) -> None:
    settings = load(file, GOOD)
    assert settings.services == {
        "prompt_enhancer": ServiceSettings(
            url="http://127.0.0.1:9000/v1/execute", limit=5, timeout_seconds=60, max_attempts=4
        ),
        "image_gen": ServiceSettings(
            url="https://gpu.example/v1", limit=1, timeout_seconds=120, max_attempts=9
        ),
    }
    assert settings.pipelines == {
        "full": (("prompt_enhancer",), ("image_gen", "upscale"), ("prompt_enhancer",)),
        "short": (("upscale",),),
    }


def test_a_service_is_a_task_type_under_a_limit_of_the_same_name(file: Path) -> None:
    settings = load(file, GOOD + "[tasks.upscale]\nmax_retries = 1\n[limits]\ngpu = 3")
    assert settings.declared_limits == {
        "gpu": Slots(limit=3),
        "service:prompt_enhancer": Slots(limit=5),
        "service:image_gen": Slots(limit=1),
    }
    assert settings.declared_tasks.keys() == {"upscale", "service:prompt_enhancer", "service:image_gen"}
    declared = settings.declared_tasks["service:prompt_enhancer"]
    assert declared == TaskSettings(limits={"service:prompt_enhancer": 1}, timeout_seconds=61, max_retries=3)


def test_a_service_may_have_a_longer_lease(file: Path) -> None:
    settings = load(file, SERVICE + "lease_seconds = 400")
    assert settings.declared_tasks["service:x"].lease_seconds == 400
    assert settings.lease_ms == 30_000


def test_the_environment_can_point_a_service_elsewhere(file: Path) -> None:
    settings = load(file, GOOD, FAIRLEAD_SERVICES__IMAGE_GEN__URL="http://gpu-2:9000/")
    assert settings.services["image_gen"].url == "http://gpu-2:9000/"
    assert load(file, "", FAIRLEAD_PIPELINES__SHORT='["a", ["b"]]').pipelines == {"short": (("a",), ("b",))}


SERVICE = '[services.x]\nurl = "http://h/"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[services.x]\nlimit = 1", "services.x: url is missing: say where it answers, as in"),
        ('[services.x]\nurl = "ftp://h/"', "services.x: url must begin with http:// or https://"),
        ("[services.x]\nurl = 5", "services.x.url: expected a text, not 5"),
        (SERVICE + "limit = 0", "services.x.limit: expected a whole number of at least 1, not 0"),
        (SERVICE + "limit = 1.5", "services.x.limit: expected a whole number of at least 1, not 1.5"),
        (
            SERVICE + "timeout_seconds = 0",
            "services.x.timeout_seconds: expected a number greater than 0, not 0",
        ),
        (SERVICE + "timeout_seconds = inf", "services.x.timeout_seconds: expected a finite number, not inf"),
        (
            SERVICE + "max_attempts = 0",
            "services.x.max_attempts: expected a whole number from 1 to 1001, not 0",
        ),
        (SERVICE + "max_attempts = 1002", "services.x.max_attempts: expected a whole number from 1 to 1001"),
        (SERVICE + "limt = 3", "services.x.limt: unknown key; did you mean services.x.limit?"),
        ("services = 5", "services: expected a table, not 5"),
        ('[services]\nx = "http://h/"', 'services.x: expected a table, not "http://h/"'),
        ('[services."a b"]\nurl = "http://h/"', "services.a b: use 1 to 100 of"),
        ('[services."service:x"]\nurl = "http://h/"', "services.service:x: leave out 'service:'"),
        ("[pipelines]\np = []", "pipelines.p: has no steps: name at least one"),
        ('[pipelines]\np = "a"', "pipelines.p: expected a list of steps"),
        ("[pipelines]\np = 5", "pipelines.p: expected a list of steps"),
        ('[pipelines]\np = ["a", 5]', "pipelines.p: entry 2: a step is a name, or { parallel"),
        ('[pipelines]\np = ["a", {}]', "pipelines.p: entry 2: a step is a name, or { parallel"),
        (
            '[pipelines]\np = ["a", { paralel = ["b"] }]',
            "pipelines.p: entry 2: a step is a name, or { parallel",
        ),
        (
            '[pipelines]\np = ["a", { parallel = "b" }]',
            "pipelines.p: entry 2: a step is a name, or { parallel",
        ),
        ('[pipelines]\np = ["a", { parallel = [] }]', "pipelines.p: entry 2: parallel has no steps"),
        ('[pipelines]\np = ["a", { parallel = [["b"]] }]', "pipelines.p: entry 2: a step is a name, or"),
        ('[pipelines]\np = ["a b"]', "pipelines.p: entry 1: 'a b' is no name of a step: use 1 to 100 of"),
        (
            '[pipelines]\np = ["service:a"]',
            "pipelines.p: entry 1: 'service:a' is no name of a step: leave out",
        ),
        (f"[pipelines]\np = {['a'] * 33}", "pipelines.p: has 33 steps, at most 32 are accepted"),
        ('[pipelines]\n"a b" = ["x"]', "pipelines.a b: use 1 to 100 of"),
        ('[pipelines.p]\nsteps = ["a"]', "pipelines.p: expected a list of steps"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_what_to_do(file: Path, text: str, message: str) -> None:
    found = refusal(file, text)
    assert found.startswith(message)
    assert "(from some.toml, line " in found


def test_32_steps_are_accepted(file: Path) -> None:
    text = f"[pipelines]\np = [{{ parallel = {['a'] * 31} }}, 'b']"
    assert sum(map(len, load(file, text).pipelines["p"])) == 32


@pytest.mark.parametrize("table", ["tasks", "limits"])
def test_the_type_and_the_limit_of_a_service_are_set_in_one_place_only(file: Path, table: str) -> None:
    value = "{ max_retries = 1 }" if table == "tasks" else "3"
    found = refusal(file, f'{SERVICE}[{table}]\n"service:x" = {value}')
    assert found.startswith(f"settings: {table}.service:x: say it in services.x")


def test_a_pipeline_given_twice_is_refused_by_line(file: Path) -> None:
    assert "(at line 3" in refusal(file, '[pipelines]\np = ["a"]\np = ["b"]\nq = ["c"]')


TEXT = """\
# image_gen is limited; limit = 5 is not set here
title = '''
[services.image_gen]
limit = 9
'''
[pipelines]
full = [
    "prompt_enhancer",
    "image_gen",
]
[services.image_gen]
url = "http://h/"
limit = 1
services.image_gen.limit = 3
[services]
"a.b" = { url = "http://h/", limit = 2 }
c.limit = 4
"""


def test_the_line_of_a_key_is_found(subtests: pytest.Subtests) -> None:
    for key, line in [
        (("title",), 2),
        (("pipelines",), 6),
        (("pipelines", "full"), 7),
        (("services", "image_gen"), 11),
        (("services", "image_gen", "limit"), 13),
        (("services", "image_gen", "services", "image_gen", "limit"), 14),
        (("services", "image_gen", "missing"), 11),  # the table it should be in
        (("services", "a.b", "limit"), 16),
        (("services", "c"), 17),
        (("nowhere",), None),
    ]:
        with subtests.test(key=key, line=line):
            assert line_of(TEXT, key) == line


def test_a_variable_has_no_line(file: Path) -> None:
    found = refusal(file, SERVICE, FAIRLEAD_SERVICES__X__LIMIT="none")
    assert found.endswith("(from FAIRLEAD_SERVICES__X__LIMIT)")


def test_addresses_of_services(subtests: pytest.Subtests) -> None:
    for url in [
        "http://127.0.0.1:9000/v1/execute",
        "https://gpu.example",
        "http://gpu-1.internal:8080/a/b?model=x&y=%20",
        "http://[::1]:9000/",
        "http://10.0.0.7/",  # an operator's own network is where services are
    ]:
        with subtests.test(url=url):
            assert url_problem(url) is None


def test_an_invalid_address_of_a_service_is_refused(subtests: pytest.Subtests) -> None:
    for url in [
        "",
        "h",
        "//h/",
        "/v1/execute",
        "h:80",
        "ftp://h/",
        "file:///etc/passwd",
        "gopher://h/",
        "unix:///run/x.sock",
        "javascript:alert(1)",
        "http:",
        "http:/h",
        "http://",
        "http:///path",
        "http://:80/",
        "http://?x",
        "http://#x",
        "http://h:/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:-1/",
        "http://h:x/",
        "http://user@h/",
        "http://user:secret@h/",
        "http://@h/",
        "http://good.example@evil.example/",
        "http://h/#fragment",
        "http://h/#",
        "http://h/a b",
        "http://h/\r\nx: y",
        "http://h/\x00",
        "http://h\t/",
        "http://h\\@evil.example/",
        "http://\uff48/",
        "http://h/\u00e9",
        "http://[::1/",
        "http://[nonsense]/",
        " http://h/",
    ]:
        with subtests.test(url=url):
            assert url_problem(url)


def test_a_password_in_an_address_is_not_repeated(file: Path) -> None:
    found = refusal(file, '[services.x]\nurl = "http://user:hunter2@h/"')
    assert "must not hold a user or a password" in found
    assert "hunter2" not in found
