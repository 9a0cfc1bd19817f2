"""Which URLs of servers and services can be used, and what to write instead of those that cannot."""

from urllib.parse import urlsplit

FORMS = "redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
SCHEMES = ("redis", "rediss", "unix")
GATEWAYS = ("http", "https")


def engine_url_problem(url: str) -> str | None:
    """What is wrong with it, if anything. The URL itself is not repeated: it may hold a password."""
    scheme, separator, _ = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in SCHEMES + GATEWAYS:
        return _other(scheme if separator else "")
    if scheme in GATEWAYS:  # the client checks it in more detail
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        return f"url is not an address ({problem}): expected {FORMS}"
    if not (parts.path if scheme == "unix" else host):
        return f"url names no {'path' if scheme == 'unix' else 'host'}: expected {FORMS}"
    return None


def _other(scheme: str) -> str:
    if "sentinel" in scheme:
        return (
            "Fairlead does not ask Sentinel for the primary: set url to the primary itself "
            "(redis://HOST:PORT), or to an address that always leads to it"
        )
    if "cluster" in scheme:
        return (
            "Fairlead does not follow a cluster from node to node: set url to a single server, or to the "
            "node that holds the namespace (redis://HOST:PORT)"
        )
    if scheme in ("valkey", "valkeys"):
        return f"url begins with {scheme}://: write redis:// or rediss://, Valkey speaks the same protocol"
    return f"url must be {FORMS}, or for clients and workers a gateway's http://HOST:PORT"


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
