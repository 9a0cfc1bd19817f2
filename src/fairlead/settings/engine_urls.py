"""The URLs of engines that are found by asking: Sentinels, or the nodes of a cluster."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

SENTINEL_FORM = "redis+sentinel://HOST:26379,HOST:26379/SERVICE"
CLUSTER_FORM = "redis+cluster://HOST:PORT,HOST:PORT"
FOUND = ("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
PORTS = {"sentinel": 26379, "cluster": 6379}
OF_SENTINELS = ("sentinel_username", "sentinel_password")  # options after the question mark


@dataclass(frozen=True, slots=True)
class Discovery:
    """Who knows where the primary is: the URLs of all who can be asked, and what to ask them for."""

    kind: Literal["sentinel", "cluster"]
    urls: tuple[str, ...]
    service: str = ""


@dataclass(frozen=True, slots=True)
class EngineUrl:
    """The URL for the client library; if the server has to be found, its host and port are to be replaced."""

    server: str
    discovery: Discovery | None = None


def is_found_by_asking(url: str) -> bool:
    return url.partition("://")[0].lower() in FOUND


def read_engine_url(url: str) -> EngineUrl:
    """Raises ValueError, without repeating the URL: it may hold a password."""
    if not is_found_by_asking(url):
        return EngineUrl(url)
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    user, at, hosts = parts.netloc.rpartition("@")
    places = [_place(host, PORTS[kind]) for host in hosts.split(",")]
    query = parse_qsl(parts.query, keep_blank_values=True)
    options = urlencode([(name, value) for name, value in query if name not in OF_SENTINELS])

    def at_place(place: str, who: str = user + at, path: str = "") -> str:
        return urlunsplit((scheme, who + place, path, options, ""))

    if kind == "cluster":
        if parts.path.strip("/"):
            raise ValueError(f"a cluster has no numbered databases: expected {CLUSTER_FORM}")
        nodes = Discovery("cluster", tuple(map(at_place, places)))
        return EngineUrl(at_place(places[0]), nodes)
    service, _, database = parts.path.strip("/").partition("/")
    if not service or (database and not database.isdigit()):
        raise ValueError(f"it must end with the service that the Sentinels watch: expected {SENTINEL_FORM}")
    login = _sentinel_login(parts)
    sentinels = Discovery("sentinel", tuple(at_place(place, login) for place in places), unquote(service))
    return EngineUrl(at_place(places[0], path=f"/{database}" if database else ""), sentinels)


def _place(host: str, usual_port: int) -> str:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError("a host is missing between its commas")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{parts.port or usual_port}"


def _sentinel_login(parts: SplitResult) -> str:
    """The Sentinels' own user and password; those before the @ are the server's."""
    # as they were written: decoded they could not be put into a URL again
    given = dict(pair.partition("=")[::2] for pair in parts.query.split("&"))
    username, password = (given.get(name, "") for name in OF_SENTINELS)
    return f"{username}:{password}@" if username or password else ""
