"""One call of a service over HTTP, bounded in time and in size."""

import re
import secrets
from asyncio import timeout
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import msgspec

from fairlead import __version__
from fairlead.checks import MOST_BYTES
from fairlead.clock import monotonic
from fairlead.pipeline.answers import Heard, classify
from fairlead.settings import ServiceSettings

CONNECT_SECONDS = 5.0
# Servers close what has been idle for 2 s or 5 s: a call must not be sent into a closing connection.
IDLE_SECONDS = 1.5
MOST_IDLE = 100  # connections
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRequest:
    """What a service is asked, and by which run of which step."""

    task_id: str
    fence: int
    attempt: int
    params: Mapping[str, Any]
    context: Mapping[str, Any]
    job_id: str | None = None
    step: int = 0
    trace_id: str | None = None

    def body(self, service: str) -> bytes:
        meta = {
            "job_id": self.job_id,
            "step_index": self.step,
            "service_name": service,
            "attempt": self.attempt,
        }
        return msgspec.json.encode(
            {"meta": meta, "payload": {"params": self.params, "context": self.context}}
        )

    def headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",  # a small answer must not unpack to a large one
            "user-agent": f"fairlead/{__version__}",
            # The same for every try, so that the service can see that it has done this already...
            "idempotency-key": f"{self.job_id}:{self.step}" if self.job_id else self.task_id,
            # ...and larger for every try, so that it can refuse one that is late.
            "x-fairlead-fence": str(self.fence),
        }
        if self.trace_id and TRACE_ID.fullmatch(self.trace_id):
            headers["traceparent"] = f"00-{self.trace_id}-{secrets.token_hex(8)}-01"
        return headers


class ServiceClient:
    """Calls of one service over its own connections: a service that hangs takes none from another."""

    def __init__(self, name: str, service: ServiceSettings) -> None:
        self._name = name
        self._service = service
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            # no bound here: how many calls there are at once is the limit's to say, and it may be raised
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=min(service.limit, MOST_IDLE),
                keepalive_expiry=IDLE_SECONDS,
            ),
            follow_redirects=False,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # one job's must not go to another
        )

    async def call(self, call: ServiceRequest) -> dict[str, Any]:
        """`{"data": ..., "metrics": {...}}`; RetriableError or PermanentError with a `code` otherwise."""
        began = monotonic()
        heard: Heard | Exception
        try:
            async with timeout(self._service.timeout_seconds):
                heard = await self._ask(call)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
            heard = problem
        answer = classify(heard, round((monotonic() - began) * 1000))
        if isinstance(answer, dict):
            return answer
        answer.facts = self._facts(heard)
        raise answer from (heard if isinstance(heard, Exception) else None)

    def _facts(self, heard: Heard | Exception) -> dict[str, str | int | None]:
        """For the log. The task's error, which customers read, has none of them."""
        where = httpx.URL(self._service.url)
        return {
            "service": self._name,
            "host": where.host + (f":{where.port}" if where.port else ""),
            "status": None if isinstance(heard, Exception) else heard.status,
            "cause": f"{type(heard).__name__}: {heard}" if isinstance(heard, Exception) else None,
        }

    async def _ask(self, call: ServiceRequest) -> Heard:
        """Leaving the block closes the connection unless all of the answer was read: also when cancelled."""
        body, headers = call.body(self._name), call.headers()
        async with self._client.stream("POST", self._service.url, content=body, headers=headers) as answer:
            heard = b""
            if not answer.has_redirect_location:  # where it leads does not matter here
                async for chunk in answer.aiter_raw():
                    heard += chunk
                    if len(heard) > MOST_BYTES:
                        break
            return Heard(answer.status_code, dict(answer.headers.items()), heard)

    async def close(self) -> None:
        await self._client.aclose()
