"""Asks a service for the priority and weight of a user. If it fails or is slow, the fallback applies."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple, get_args
from urllib.parse import quote

import httpx

from fairlead.background import cancel_all
from fairlead.checks import is_weight
from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.settings import PriorityName, PriorityServiceSettings

WORDS: tuple[PriorityName, ...] = get_args(PriorityName)
USUAL_PATH = "/users/{user_id}/priority"
LEAST_SECONDS = 0.01  # no answer arrives sooner; a wait may also end a moment before its deadline
UNASKABLE = ("", ".", "..")  # in a path these lead elsewhere
NO_SUCH_USER = (400, 404, 410, 422)
MOST_BYTES = 64 * 1024
MOST_KNOWN = 10_000
MOST_FAILURES = 5  # in a row; then the service is not asked for a while
LEFT_ALONE = 10.0  # seconds, until one more attempt
AT_ONCE = 50  # users of one request that are looked up at the same time
MOST_AT_ONCE = 100  # of all requests
USUAL_WEIGHT = 1.0
MOST_PLANS = 1000  # that are unknown and logged

log = EventLog("fairlead.priority_service")


class Terms(NamedTuple):
    """The priority and weight of a user's tasks."""

    priority: PriorityName
    weight: float | None = None  # None: as the settings say


class PriorityService(AbstractAsyncContextManager["PriorityService"]):
    """`async with PriorityService(settings.priority_service) as service: await service.terms_of(["ann"])`

    `plans` are the weights of users whose plan the service names.
    """

    def __init__(self, settings: PriorityServiceSettings, plans: Mapping[str, float] | None = None) -> None:
        self._settings = settings
        self._plans = plans or {}
        self._unknown_plans: set[str] = set()
        self._fallback = Terms(settings.fallback)
        self._client = httpx.AsyncClient(
            timeout=None,  # set for each call
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # one user's must not reach another
        )
        self._known: dict[str, tuple[float, Terms]] = {}  # user -> until when, and what
        self._asking: dict[str, asyncio.Task[Terms]] = {}
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)
        self._failures = 0
        self._trial_at = 0.0

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await cancel_all(*self._asking.values())
        await self._client.aclose()

    async def terms_of(self, user_ids: Iterable[str]) -> dict[str, Terms]:
        """Never raises, and never takes longer than the time limit, which is the same for all: each user is
        looked up once, and gets the fallback if there is no answer by then."""
        deadline = monotonic() + self._settings.timeout_seconds
        found: dict[str, Terms] = {}
        users = iter(dict.fromkeys(user_ids))

        async def ask_one_by_one() -> None:
            for user_id in users:  # all workers take from one iterator
                found[user_id] = await self._terms_of(user_id, deadline)

        await asyncio.gather(*(ask_one_by_one() for _ in range(AT_ONCE)))
        return found

    async def _terms_of(self, user_id: str, deadline: float) -> Terms:
        until, known = self._known.get(user_id, (0.0, self._fallback))
        now = monotonic()
        if now < until:
            return known
        if deadline - now < LEAST_SECONDS:
            return self._fallback
        asking = self._asking.get(user_id)
        if not asking:
            if user_id in UNASKABLE or not self._may_ask():
                return self._fallback
            asking = self._asking[user_id] = asyncio.create_task(self._ask(user_id))
            asking.add_done_callback(lambda _: self._asking.pop(user_id, None))
        # Not awaited itself: one client may disconnect while others wait for the same answer.
        done, _ = await asyncio.wait([asking], timeout=deadline - now)
        return asking.result() if done and not asking.cancelled() else self._fallback

    def _may_ask(self) -> bool:
        if self._failures < MOST_FAILURES:
            return True
        now = monotonic()
        if now < self._trial_at:
            return False
        self._trial_at = now + LEFT_ALONE  # one attempt: the next ones do not wait for its outcome
        return True

    async def _ask(self, user_id: str) -> Terms:
        asked = False
        try:
            async with asyncio.timeout(self._settings.timeout_seconds), self._turns:
                asked = True
                body = await self._get(self._url(user_id))
            terms = self._fallback if body is None else self._read(body)
        except Exception as problem:  # any error: a task must not fail because of it
            if asked:  # else its turn never came, which is no fault of the service
                self._failed(problem)
            return self._fallback
        if self._failures >= MOST_FAILURES:
            log.info("priority_service_back")
        self._failures = 0
        self._known.pop(user_id, None)  # so that it becomes the last
        self._known[user_id] = (monotonic() + self._settings.cache_seconds, terms)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return terms

    async def _get(self, url: str) -> bytes | None:
        """The body of the answer; None: the service is well, but does not know this user."""
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

    def _read(self, body: bytes) -> Terms:
        priority, weight, plan = read_answer(body)
        if is_weight(weight):
            return Terms(priority, float(weight))
        if weight is not None:
            log.warning("weight_ignored", weight=f"{weight!r:.50}")
        if self._plans and isinstance(plan, str):
            return Terms(priority, self._weight_of(plan))
        return Terms(priority, None if weight is None else USUAL_WEIGHT)

    def _weight_of(self, plan: str) -> float:
        if plan in self._plans:
            return self._plans[plan]
        if plan not in self._unknown_plans and len(self._unknown_plans) < MOST_PLANS:
            self._unknown_plans.add(plan)
            log.warning("plan_unknown", plan=f"{plan:.50}", weight=USUAL_WEIGHT)
        return USUAL_WEIGHT

    def _failed(self, problem: Exception) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self._trial_at = monotonic() + LEFT_ALONE
        if self._failures == MOST_FAILURES:  # without the URL, which may hold a password
            log.warning("priority_service_left_alone", problem=type(problem).__name__)

    def _url(self, user_id: str) -> str:
        url = self._settings.url or ""
        if "{user_id}" not in url:
            url = url.rstrip("/") + USUAL_PATH
        return url.replace("{user_id}", quote(user_id, safe="", errors="replace"))


def read_answer(body: bytes) -> tuple[PriorityName, Any, Any]:
    """Reads `{"priority": "high"}`, perhaps with `weight` or `plan`, or the word alone; else ValueError."""
    try:
        said: Any = json.loads(body)  # accepts NaN, too: a bad weight does not affect the priority
    except (ValueError, RecursionError):
        said = body.decode(errors="replace")
    said = said if isinstance(said, dict) else {"priority": said}
    return _priority(said.get("priority")), said.get("weight"), said.get("plan")


def _priority(said: object) -> PriorityName:
    word = said.strip().lower() if isinstance(said, str) else None
    for priority in WORDS:
        if priority == word:
            return priority
    raise ValueError("the answer is no priority")
