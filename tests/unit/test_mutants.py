"""The faults that `python -m tests.mutation` plants: small, in code only, and found again after an edit."""

from pathlib import Path

from tests.mutation.mutants import Mutant, mutants, sample

SOURCE = Path(__file__).parents[2] / "src"


def changes(tmp_path: Path, name: str, text: str) -> set[tuple[str, str, str]]:
    (tmp_path / name).write_text(text)
    return {(mutant.kind, mutant.old, mutant.new) for mutant in mutants(tmp_path, name)}


def test_in_lua_comparisons_words_numbers_and_calls_are_changed_but_no_comment_or_text(
    tmp_path: Path,
) -> None:
    text = 'if a == 1 and not b then\n  put(view, "x == 2") -- 3 or 4\nend\nlocal c = f(b)\n'
    assert changes(tmp_path, "act.lua", text) == {
        ("flip", "==", "~="),
        ("flip", "and", "or"),
        ("number", "1", "2"),
        ("drop", 'put(view, "x == 2")', ""),
    }


def test_in_python_too_and_no_decorator_or_sign(tmp_path: Path) -> None:
    text = "@frozen(slots=True)\ndef f(a):\n    g(-a)  # 1 or 2\n    return a - 1 < 2\n"
    assert changes(tmp_path, "act.py", text) == {
        ("drop", "g(-a)", "pass"),
        ("flip", "-", "+"),
        ("flip", "<", "<="),
        ("number", "1", "2"),
        ("number", "2", "3"),
    }


def test_a_fault_is_planted_in_its_line_even_if_that_has_moved() -> None:
    mutant = Mutant("flip", "act.lua", "if a < b then", 1, 5, "<", "<=")
    assert mutant.planted("if a < b then\n\n\nif a < b then\n") == "if a < b then\n\n\nif a <= b then\n"
    assert mutant.planted("if a < b then\n") is None


def test_the_same_source_and_seed_give_the_same_faults() -> None:
    files = ["fairlead/model/states.py", "fairlead/store/lua/claim.lua"]
    assert sample(SOURCE, files, 1, 12) == sample(SOURCE, files, 1, 12)
    assert sample(SOURCE, files, 1, 12) != sample(SOURCE, files, 2, 12)
