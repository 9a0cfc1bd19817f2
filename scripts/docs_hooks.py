"""Links of pages that lead out of `docs/` become text: the site does not contain what they lead to."""

import re

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?!\w+\.md|decisions/)[^)]*\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    return OUTSIDE.sub(r"\1", markdown)
