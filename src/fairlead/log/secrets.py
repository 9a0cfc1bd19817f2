"""Takes credentials out of text that is to be logged: errors and other libraries may quote them."""

import re

HIDDEN = "***"

_NAMES = r"(?:authorization|api[-_]?key|password|passwd|secret|token|cookie|set-cookie)"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # keys of gateways: the id, which is no secret, stays
    (re.compile(r"\b(flk_[A-Za-z0-9]{1,16}_)[A-Za-z0-9_-]+"), rf"\1{HIDDEN}"),
    # user and password of a URL; what follows the first @ may be part of a password with an @ in it
    (re.compile(r"(?<=://)[^\s/?#'\"<>]*@"), f"{HIDDEN}@"),
    # the query of a URL
    (re.compile(r"(\w://[^\s?'\"<>]+\?)[^\s'\"<>)]+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    # password=..., "api_key": "...", 'x-token': b'...'
    (
        re.compile(rf"(\b[\w-]*{_NAMES}\b\\?[\"']?\s*[:=,]\s*b?)(\\?[\"'])((?:(?!\2).)+)\2", re.IGNORECASE),
        rf"\1\2{HIDDEN}\2",
    ),
    (re.compile(rf"(\b[\w-]*{_NAMES}=)[^\s\"'&,;)]+", re.IGNORECASE), rf"\1{HIDDEN}"),
)


def redacted(text: str) -> str:
    """The text with `***` in place of what looks like a key, a password, a token or the query of a URL."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
