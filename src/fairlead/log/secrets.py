"""Removes credentials from text to be logged: errors and other libraries may quote them."""

import re

HIDDEN = "***"

_NAMES = r"(?:authorization|api[-_]?key|password|passwd|secret|token|cookie)"
# Clients choose what errors of their tasks quote, so the time of each rule grows with the text alone: none
# looks far ahead without consuming what it has seen.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # keys of gateways: the id, which is no secret, stays
    (re.compile(r"\b(flk_[A-Za-z0-9]{1,16}_)[A-Za-z0-9_-]+"), rf"\1{HIDDEN}"),
    # user and password of a URL; a password may have an @ in it
    (re.compile(r"(?<=://)[^\s/?#'\"<>]*@"), f"{HIDDEN}@"),
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    # password="...", "api_key": "...", (b'x-token', b'...')
    (
        re.compile(rf"({_NAMES}\\?[\"']?\s*[:=,]\s*b?)(\\?[\"'])((?:(?!\2).)+)\2", re.IGNORECASE),
        rf"\1\2{HIDDEN}\2",
    ),
    (re.compile(rf"({_NAMES}=)[^\s\"'&,;)]+", re.IGNORECASE), rf"\1{HIDDEN}"),
)
_URL = re.compile(r"(\w://[^\s?'\"<>]+)(\?[^\s'\"<>)]+)?")


def redacted(text: str) -> str:
    """Replaces what looks like a key, a password, a token or the query of a URL with `***`."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return _URL.sub(lambda url: f"{url[1]}?{HIDDEN}" if url[2] else url[0], text)
