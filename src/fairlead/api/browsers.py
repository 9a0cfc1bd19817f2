"""Browsers: a session in place of the key, and a token that pages of other sites cannot know.

The session is in a cookie, which a browser sends with every request to this server, whoever made the page.
The token is a digest of the session: scripts of our own pages get it from `GET /api/v1/session`.
"""

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie

from fairlead.api.failed_keys import FailedKeys
from fairlead.api.problems import CsrfTokenMissing, Unauthorized
from fairlead.store.access.browser_sessions import SESSION_SECONDS, BrowserSession
from fairlead.store.store import Store

LOGINS_PER_MINUTE = 60  # of one address
CSRF_HEADER = "x-csrf-token"


class Browsers:
    def __init__(self, store: Store) -> None:
        self._sessions = store.browser_sessions
        self._logins = FailedKeys(LOGINS_PER_MINUTE)  # a session is kept for hours: somebody could open many

    async def log_in(self, key_id: str, headers: dict[str, str], address: str) -> tuple[BrowserSession, str]:
        """A new session, and the cookie that holds its secret."""
        self._logins.note(address)
        secret = await self._sessions.open(key_id)
        session = await self._sessions.find(secret)
        if session is None:
            raise Unauthorized("The session has ended already: log in again.")
        return session, _cookie(headers, secret, SESSION_SECONDS)

    async def log_out(self, headers: dict[str, str]) -> str:
        """The cookie that replaces that of the session."""
        if secret := secret_in(headers):
            _check_token(secret, headers)
            await self._sessions.close(secret)
        return _cookie(headers, "", 0)

    async def session(self, headers: dict[str, str]) -> BrowserSession | None:
        secret = secret_in(headers)
        return await self._sessions.find(secret) if secret else None

    async def is_open(self, secret: str) -> bool:
        return await self._sessions.find(secret) is not None

    async def key_id(self, headers: dict[str, str], *, is_safe: bool) -> str:
        """The key with which the browser has logged in."""
        session = await self.session(headers)
        if session is None:
            raise Unauthorized("This session has ended: log in again.")
        if not is_safe:
            _check_token(session.secret, headers)
        return session.key_id


def _check_token(secret: str, headers: dict[str, str]) -> None:
    if not hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), csrf_token(secret).encode()):
        raise CsrfTokenMissing()


def secret_in(headers: dict[str, str]) -> str | None:
    """Of the session that a request names."""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
    except CookieError:
        return None
    return morsel.value if morsel and morsel.value else None


def csrf_token(secret: str) -> str:
    return hashlib.sha256(b"csrf:" + secret.encode()).hexdigest()


def _cookie_name(headers: dict[str, str]) -> str:
    """Browsers send a cookie to every port of a host: two gateways on one machine must not share it."""
    port = headers.get("host", "").rpartition("]")[2].partition(":")[2]
    return f"fairlead_session_{port}" if port.isdigit() else "fairlead_session"


def _cookie(headers: dict[str, str], secret: str, seconds: int) -> str:
    """TLS ends at a proxy before this server, but the page knows: its origin is in the request."""
    secure = "; Secure" if headers.get("origin", "").startswith("https:") else ""
    rules = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return f"{_cookie_name(headers)}={secret}; {rules}"
