"""The sample file: every setting, as a comment that shows its default."""

from pathlib import Path

from fairlead.errors import InvalidInput

#: Generated from the sections: a test says how, and fails when it is out of date.
SAMPLE = Path(__file__).with_name("sample.toml")


def write_sample(path: Path, *, force: bool) -> None:
    """Raises InvalidInput if the file exists, unless `force`, or cannot be written."""
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(SAMPLE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise InvalidInput(
            str(path), "exists already: choose another name, or overwrite it by --force"
        ) from None
    except OSError as problem:
        raise InvalidInput(str(path), f"cannot be written: {problem.strerror}") from problem
