"""Services that Fairlead calls: the steps of pipelines, and the one that knows the priority of a user."""

import re
from typing import Annotated

from msgspec import Meta

from fairlead.settings.base import Positive, PriorityName, Problem, Seconds, Section, SomeSeconds, wrong
from fairlead.settings.limits import TaskSettings
from fairlead.settings.urls import url_problem

USER = re.compile("//[^/@]*@")  # of a URL, and its password


class PriorityServiceSettings(Section, frozen=True):
    """The service that returns the priority of a user; without a URL such tasks are `medium`."""

    #: With `{user_id}` in it; otherwise `/users/{user_id}/priority` is appended.
    #: Example: "http://127.0.0.1:8100/users/{user_id}/priority"
    url: str | None = None
    #: How long a request waits for the service.
    timeout_seconds: SomeSeconds = 2
    #: How long an answer is remembered.
    cache_seconds: Seconds = 60
    #: The priority when the service does not answer or does not know the user.
    fallback: PriorityName = "medium"
    #: Whether the priority that a client asks for counts; otherwise only that of the service does.
    trust_clients: bool = True

    def problem(self) -> Problem | None:
        if self.url is None:
            return None
        # unlike other services it may ask for a password
        return wrong(url_problem(USER.sub("//", self.url.replace("{user_id}", "user"))), "url")


class ServiceSettings(Section, frozen=True):
    """An HTTP endpoint that does a step of a pipeline. NAME is the name of the step."""

    #: Where it answers. Required. Example: "http://127.0.0.1:9000/v1/execute"
    url: str = ""
    #: How many calls it takes at once.
    limit: Positive = 1
    #: How long one call may take.
    timeout_seconds: SomeSeconds = 120
    #: How long a step may wait for a free call before the job fails as resumable; by default without limit,
    #: and a job's own `max_wait_seconds` takes precedence. Example: 360
    wait_seconds: SomeSeconds | None = None
    #: How long the lease of a call lasts unless it is renewed: when the worker that makes the call is lost,
    #: the call is repeated only after that. By default, and at least, as `lease.lease_seconds`. Example: 400
    lease_seconds: SomeSeconds | None = None
    #: How often a step is tried; nine attempts survive an outage of a minute.
    max_attempts: Annotated[int, Meta(ge=1, le=1001)] = 9

    def problem(self) -> Problem | None:
        return wrong(url_problem(self.url), "url")

    def as_task(self, limit: str) -> TaskSettings:
        """The settings of a call as a task."""
        return TaskSettings(
            limits={limit: 1},
            # a little longer than the call may take: so the call itself ends first, and says why
            timeout_seconds=self.timeout_seconds + 1,
            max_retries=self.max_attempts - 1,
            lease_seconds=self.lease_seconds,
        )
