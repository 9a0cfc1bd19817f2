"""The priority of a user: a service is asked that may be slow, wrong or away; there is always an answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Self, get_args
from urllib.parse import quote

import httpx
import msgspec

from fairlead.clock import monotonic
from fairlead.settings import PriorityName, PriorityServiceSettings

WORDS: tuple[PriorityName, ...] = get_args(PriorityName)
USUAL_PATH = "/users/{user_id}/priority"
UNASKABLE = ("", ".", "..")  # in a path they are no names, but ways to another place
NO_SUCH_USER = (400, 404, 410, 422)
MOST_BYTES = 64 * 1024
MOST_KNOWN = 10_000
MOST_FAILURES = 5  # in a row; then it is left alone
LEFT_ALONE = 10.0  # seconds, until one more trial

#: The body of the answer; None: the service is well, but does not know this user. Anything else is raised.
Get = Callable[[str], Awaitable[bytes | None]]

log = logging.getLogger("fairlead.priority_service")


class PriorityService:
    """`async with PriorityService(settings.priority_service) as service: await service.priority_of("ann")`"""

    def __init__(self, settings: PriorityServiceSettings, get: Get | None = None) -> None:
        self._settings = settings
        self._get: Get = get or HttpGet()
        self._known: dict[str, tuple[float, PriorityName]] = {}  # user -> until when, and what
        self._asking: dict[str, asyncio.Task[PriorityName]] = {}
        self._failures = 0
        self._trial_at = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        if isinstance(self._get, HttpGet):
            await self._get.close()

    async def priority_of(self, user_id: str) -> PriorityName:
        """Never raises, and never takes longer than the limit."""
        until, known = self._known.get(user_id, (0.0, self._settings.fallback))
        if monotonic() < until:
            return known
        asking = self._asking.get(user_id)
        if not asking:
            if user_id in UNASKABLE or not self._may_ask():
                return self._settings.fallback
            asking = self._asking[user_id] = asyncio.create_task(self._ask(user_id))
            asking.add_done_callback(lambda _: self._asking.pop(user_id, None))
        # Not awaited itself: whoever asks may go away, and others wait for the same answer.
        done, _ = await asyncio.wait([asking], timeout=self._settings.timeout_seconds)
        return asking.result() if done and not asking.cancelled() else self._settings.fallback

    def _may_ask(self) -> bool:
        if self._failures < MOST_FAILURES:
            return True
        now = monotonic()
        if now < self._trial_at:
            return False
        self._trial_at = now + LEFT_ALONE  # one trial: the next ones do not wait for how it ends
        return True

    async def _ask(self, user_id: str) -> PriorityName:
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                body = await self._get(self._url(user_id))
            priority = self._settings.fallback if body is None else read_priority(body)
        except Exception as problem:  # whatever it is: a task does not wait for it
            self._failed(problem)
            return self._settings.fallback
        if self._failures >= MOST_FAILURES:
            log.info("priority_service_back")
        self._failures = 0
        self._known.pop(user_id, None)  # to stand last again
        self._known[user_id] = (monotonic() + self._settings.cache_seconds, priority)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return priority

    def _failed(self, problem: Exception) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self._trial_at = monotonic() + LEFT_ALONE
        if self._failures == MOST_FAILURES:  # without the URL, which may hold a password
            log.warning("priority_service_left_alone problem=%s", type(problem).__name__)

    def _url(self, user_id: str) -> str:
        url = self._settings.url or ""
        if "{user_id}" not in url:
            url = url.rstrip("/") + USUAL_PATH
        return url.replace("{user_id}", quote(user_id, safe="", errors="replace"))


class HttpGet:
    """GET without redirects, proxies or a time of its own: who calls it watches the time."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False)

    async def __call__(self, url: str) -> bytes | None:
        async with self._client.stream("GET", url) as answer:
            if answer.status_code in NO_SUCH_USER:
                return None
            answer.raise_for_status()
            body = b""
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise ValueError("the answer is too large")
            return body

    async def close(self) -> None:
        await self._client.aclose()


def read_priority(body: bytes) -> PriorityName:
    """`{"priority": "high"}`, or the word alone; a ValueError for anything else."""
    try:
        said: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        said = body.decode(errors="replace")
    if isinstance(said, dict):
        said = said.get("priority")
    word = said.strip().lower() if isinstance(said, str) else None
    for priority in WORDS:
        if priority == word:
            return priority
    raise ValueError("the answer is no priority")
