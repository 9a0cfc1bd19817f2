"""Tables on a terminal: ids are whole, times are ages, and the columns that are used least are left out."""

import pytest

from fairlead.cli.table import GAP, Table, fitted
from fairlead.times import age_text

ID = "01a1df41-9468-76cc-958d-676058a50ff3"


def width_of(table: Table) -> int:
    columns = zip(table.columns, *table.rows, strict=True)
    return sum(max(map(len, column)) + GAP for column in columns) - GAP


def test_a_table_that_fits_is_shown_as_it_is() -> None:
    table = Table(["task", "user"], [[ID, "ann"]], ["user"])
    assert fitted(table, 80) == (Table(["task", "user"], [[ID, "ann"]]), [])


def test_columns_are_left_out_in_order_of_use_and_the_rest_is_whole(subtests: pytest.Subtests) -> None:
    table = Table(["task", "type", "status", "user"], [[ID, "draw", "queued", "ann"]], ["user", "type"])
    for width, left_out in [(56, []), (55, ["user"]), (50, ["user"]), (49, ["user", "type"])]:
        with subtests.test(width=width):
            fits, missing = fitted(table, width)
            assert missing == left_out
            assert width_of(fits) <= width
            assert fits.rows[0][0] == ID


def test_a_narrow_column_stays_when_a_wide_one_has_to_go_as_well() -> None:
    table = Table(["task", "type", "age"], [[ID, "generate_picture", "8 s"]], ["age", "type"])
    assert fitted(table, 45) == (Table(["task", "age"], [[ID, "8 s"]]), ["type"])


def test_several_columns_of_prose_share_the_room() -> None:
    table = Table(["before", "after"], [["a" * 30, "b" * 30]], ["before"])
    fits, left_out = fitted(table, 32)
    assert (left_out, [list(map(len, row)) for row in fits.rows]) == ([], [[20, 10]])


def test_prose_is_cut_before_a_column_is_left_out() -> None:
    table = Table(["task", "message"], [[ID, "there is no more paint"], [ID, "no ink"]], ["message"])
    fits, left_out = fitted(table, 50)
    assert (left_out, [row[1] for row in fits.rows]) == ([], ["there is no…", "no ink"])
    assert fitted(table, 47)[1] == ["message"]


def test_wide_characters_are_counted_as_they_are_shown() -> None:
    table = Table(["name", "user"], [["画像生成", "ann"]], ["user"])
    assert fitted(table, 14)[1] == []
    assert fitted(table, 13)[1] == ["user"]


def test_a_table_without_rows_has_its_columns() -> None:
    assert fitted(Table(["task", "user"], [], ["user"]), 4) == (Table(["task"], []), ["user"])


def test_ages_are_short_and_exact_enough(subtests: pytest.Subtests) -> None:
    for seconds, text in [
        (0, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (2 * 86_400 - 1, "47 h"),
        (90 * 86_400, "90 d"),
        (-0.5, "0 s"),
        (-300, "in 5 min"),
        (1 - 90 * 86_400, "in 90 d"),
    ]:
        with subtests.test(text=text):
            assert age_text(int(seconds * 1000)) == text
