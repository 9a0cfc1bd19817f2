"""The page of settings and the sample file are those of the code; `tests.house.settings_page` writes them."""

import re
from pathlib import Path

import msgspec
import pytest

from fairlead.settings import Settings
from fairlead.settings.base import Section
from fairlead.settings.loading import FAMILIAR_NAMES, load_settings, read_settings
from fairlead.settings.sample import SAMPLE
from tests.house.settings_page import PAGE, page, page_with, sample, tables

AGAIN = "run `python -m tests.house.settings_page`"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page_with(page()), AGAIN


def test_the_sample_is_up_to_date() -> None:
    assert SAMPLE.read_text() == sample(), AGAIN


def test_every_key_of_every_section_has_a_meaning_and_an_example() -> None:
    shown = {entry.key for table in tables() for entry in table.entries}
    for section in msgspec.structs.fields(Settings):
        default = getattr(Settings(), section.name)
        for name in default.__struct_fields__ if isinstance(default, Section) else ():
            assert any(key[:2] == (section.name, name) for key in shown)
    assert all(entry.meaning.endswith(".") for table in tables() for entry in table.entries)
    assert all(entry.example for table in tables() for entry in table.entries)


def test_every_familiar_variable_is_on_the_page() -> None:
    assert not [name for name in FAMILIAR_NAMES if f"`{name}`" not in PAGE.read_text()]


def test_the_sample_changes_nothing() -> None:
    settings, sources = read_settings(SAMPLE, {})
    assert (settings, sources.names) == (Settings(), {})


@pytest.fixture
def uncommented(tmp_path: Path) -> Path:
    """The sample with every setting in it."""
    path = tmp_path / "all.toml"
    path.write_text(re.sub(r"^#(?! )", "", SAMPLE.read_text(), flags=re.M))
    return path


def test_every_line_of_the_sample_can_be_uncommented(uncommented: Path) -> None:
    settings, sources = read_settings(uncommented, {})
    entries = [entry for table in tables() for entry in table.entries]
    assert len(sources.names) >= len(entries)
    for table in tables():
        for entry in table.entries:
            if entry.default and "NAME" not in entry.key:
                here, usual = settings, Settings()
                for part in entry.key:
                    here, usual = getattr(here, part), getattr(usual, part)
                assert here == usual


def test_every_variable_of_the_page_sets_its_key(subtests: pytest.Subtests, tmp_path: Path) -> None:
    url = {"FAIRLEAD_SERVICES__NAME__URL": "http://h/", "FAIRLEAD_TIERS__NAME__SECONDS": "3"}
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    for entry in (entry for table in tables() for entry in table.entries):
        for variable in entry.variables:
            with subtests.test(variable=variable):
                needed = {name: text for name, text in url.items() if name[:15] == variable[:15]}
                _, sources = read_settings(empty, {**needed, variable: entry.example})
                assert variable in sources.names.values()


def test_a_fresh_sample_beside_a_variable_leaves_the_rest_alone() -> None:
    assert load_settings(SAMPLE, {"MAX_CONCURRENT_TASKS": "7"}).worker.capacity == 7
