"""The session of a browser: log in with a key, ask who is logged in, log out."""

from fairlead import __version__
from fairlead.api.browsers import csrf_token
from fairlead.api.gateway import Gateway
from fairlead.api.problems import CsrfTokenMissing, ForeignOrigin, TooManyFailures, Unauthorized, WrongHost
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.key import Identity
from fairlead.shapes.base import Moment
from fairlead.shapes.session import LoginBody, LogoutAnswer, SessionAnswer
from fairlead.store.access.browser_sessions import BrowserSession
from fairlead.times import time_text

routes = Routes("/api/v1/session", scope=None)
FOREIGN = (WrongHost, ForeignOrigin)


@routes.get(refusals=FOREIGN)
async def get(request: Request) -> SessionAnswer:
    """Get who this browser is: its scopes, its tenant, and the token that its requests need."""
    gateway, headers = request.gateway, request.headers
    gateway.check_caller(headers)
    try:
        caller = await gateway.caller_of(headers, is_safe=True)
    except Unauthorized:
        return SessionAnswer(needs_key=True)
    session = await gateway.browsers.session(headers) if caller.key_id else None
    return _shown(gateway, caller, session)


@routes.post(refusals=(*FOREIGN, Unauthorized, TooManyFailures))
async def log_in(request: Request, body: LoginBody) -> SessionAnswer:
    """Open a session of 12 hours with a key; the answer sets a cookie that scripts cannot read."""
    gateway, headers = request.gateway.of_key(body.key.strip()), request.headers
    gateway.check_caller(headers)
    key = await gateway.key_for_login(body.key.strip(), request.address)
    session, cookie = await gateway.browsers.log_in(key.id, headers, request.address)
    request.answer_headers.append((b"set-cookie", cookie.encode()))
    return _shown(gateway, key.identity, session)


@routes.delete(refusals=(*FOREIGN, CsrfTokenMissing))
async def log_out(request: Request) -> LogoutAnswer:
    """End the session of this browser."""
    gateway, headers = request.gateway, request.headers
    gateway.check_caller(headers)
    cookie = await gateway.browsers.log_out(headers)
    request.answer_headers.append((b"set-cookie", cookie.encode()))
    return LogoutAnswer(logged_out=True)


def _shown(gateway: Gateway, caller: Identity, session: BrowserSession | None) -> SessionAnswer:
    return SessionAnswer(
        needs_key=False,
        name=caller.name,
        scopes=list(caller.scopes),
        tenant=caller.tenant,
        namespace=gateway.namespace,
        namespaces=[] if caller.key_id else sorted(gateway.family),
        version=__version__,
        csrf_token=csrf_token(session.secret) if session else None,
        ends_at=Moment(time_text(session.ends_at)) if session else None,
    )
