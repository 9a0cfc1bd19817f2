"""Which URLs of servers and services can be used, and what to write instead of those that cannot."""

import re
from urllib.parse import SplitResult, urlsplit

from fairlead.settings.engine_urls import (
    CLUSTER_FORM,
    FOUND,
    SENTINEL_FORM,
    is_found_by_asking,
    read_engine_url,
)

FORMS = "redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
SCHEMES = ("redis", "rediss", "unix")
GATEWAYS = ("http", "https")
A_GATEWAY = "http://HOST:PORT"
DATABASE = re.compile(r"/?|/[0-9]{1,9}")
HOST_AND_PORT = re.compile(r"[A-Za-z0-9_.-]+:[0-9]{1,5}")


def engine_url_problem(url: str) -> str | None:
    """What is wrong with it, if anything. The URL itself is not repeated: it may hold a password."""
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in SCHEMES + FOUND + GATEWAYS:
        return _other(url)
    if is_found_by_asking(url):
        return _discovery_problem(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        return f"url is not an address ({problem}): expected {A_GATEWAY if scheme in GATEWAYS else FORMS}"
    if scheme in GATEWAYS:
        return _gateway_problem(url, parts)
    if not (parts.path if scheme == "unix" else host):
        return f"url names no {'path' if scheme == 'unix' else 'host'}: expected {FORMS}"
    if scheme != "unix" and not DATABASE.fullmatch(parts.path):
        return "url must end with the number of a database, as in redis://HOST:PORT/0, or without a path"
    return None


def _discovery_problem(url: str) -> str | None:
    try:
        read_engine_url(url)
    except ValueError as problem:
        return f"url cannot be used: {problem}"
    return None


def _gateway_problem(url: str, parts: SplitResult) -> str | None:
    if "@" in parts.netloc:
        return f"url must not hold a user or a password: give the key separately, and {A_GATEWAY} as url"
    if not parts.hostname or "?" in url or "#" in url or not url.isprintable() or " " in url:
        return f"url is not the address of a gateway: expected {A_GATEWAY}"
    return None


def _other(url: str) -> str:
    scheme, separator, _ = url.lower().partition("://")
    scheme = scheme if separator else ""
    if HOST_AND_PORT.fullmatch(url):
        return f"url lacks the scheme: write redis://{url} for a server, or http://{url} for a gateway"
    for word, form in (("sentinel", SENTINEL_FORM), ("cluster", CLUSTER_FORM)):
        if word in scheme:
            return f"url must be {form}, with rediss+{word}:// for TLS"
    if scheme in ("valkey", "valkeys"):
        return f"url begins with {scheme}://: write redis:// or rediss://, Valkey speaks the same protocol"
    return (
        f"url must be {FORMS}, {SENTINEL_FORM}, {CLUSTER_FORM}, or for clients and workers a gateway's "
        "http://HOST:PORT"
    )


HISTORY_FORMS = "sqlite:///PATH or postgresql://HOST/NAME"


def history_url_problem(url: str) -> str | None:
    """What is wrong with the address of the history, if anything; it is not repeated either."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if separator and (scheme == "postgres" or scheme.startswith("postgresql+")):
        return f"url begins with {scheme}://: write postgresql://"
    if not separator or scheme not in ("sqlite", "postgresql"):
        return f"url must be {HISTORY_FORMS}"
    try:
        _ = urlsplit(url).port
    except ValueError as problem:
        return f"url is not an address ({problem}): expected {HISTORY_FORMS}"
    if scheme == "sqlite" and not (rest.startswith("/") and rest.strip("/")):
        return "url names no file: expected sqlite:///PATH, and sqlite:////PATH from the root"
    return None if rest.strip("/") else f"url names no database: expected {HISTORY_FORMS}"


def url_problem(url: str) -> str | None:
    """What is wrong with the address of a service, if anything. Passwords in it would be shown and logged."""
    if not url:
        return 'url is missing: say where it answers, as in url = "http://127.0.0.1:9000/v1/execute"'
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "url has characters that no address has: write them as %XX, a name as xn--..."
    if not url.startswith(("http://", "https://")):
        return "url must begin with http:// or https://"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as problem:
        return f"url is no address: {problem}"
    if "@" in parts.netloc:
        return "url must not hold a user or a password: let the service know its callers otherwise"
    if not host or port == 0 or parts.netloc.endswith(":"):
        return "url names no host and port to call"
    if parts.fragment or "#" in url:
        return "url must not have a #fragment: it is never sent"
    return None
