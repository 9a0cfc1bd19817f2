"""The page of errors is that of the code; `tests.house.errors_page` writes it."""

from fairlead import errors
from tests.house.errors_page import PAGE, codes_of_fields, kinds, page, page_with


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page_with(page()), "run `python -m tests.house.errors_page`"


def test_every_error_says_what_it_means() -> None:
    assert all((kind.__doc__ or "").strip().endswith(".") for kind in kinds(errors))


def test_the_codes_of_fields_are_found() -> None:
    assert {"too_large", "unknown_limit", "unknown_tier"} <= set(codes_of_fields())
