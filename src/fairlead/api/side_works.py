"""What the processes beside a server do for its namespaces: forecasts, and the history."""

from typing import NamedTuple

from msgspec.structs import replace

from fairlead.api.estimator_process import EstimatorOrder
from fairlead.api.gateway import Gateway
from fairlead.api.history_watch import HistoryWatch
from fairlead.api.recorder_process import RecorderOrder
from fairlead.api.side_process import SideProcess
from fairlead.background import Work
from fairlead.history.opening import history_url
from fairlead.settings import HistorySettings, Settings
from fairlead.store.store import Store
from fairlead.upkeep.caretaker import Caretaker


class Post(NamedTuple):
    """A namespace that something is done for while its caretaker is elected here."""

    store: Store
    caretaker: Caretaker
    history: HistorySettings = HistorySettings()  # with the URL of its database

    @property
    def namespace(self) -> str:
        return self.store.connection.keys.namespace

    @property
    def where(self) -> tuple[str, str, int]:
        """As an order names it."""
        return self.store.url, self.namespace, self.store.connection.replicas


class SideWorks:
    def __init__(self) -> None:
        self._estimated: list[Post] = []
        self._recorded: list[Post] = []
        self._watches: dict[str, HistoryWatch] = {}

    def add(self, gateway: Gateway, caretaker: Caretaker, settings: Settings) -> dict[str, Work]:
        """Returns what this process has to do for it."""
        if settings.estimates.enabled:
            self._estimated.append(Post(gateway.store, caretaker))
        if not (url := history_url(settings)):
            return {}
        post = Post(gateway.store, caretaker, replace(settings.history, url=url))
        watch = HistoryWatch(gateway.store, gateway.readiness)
        self._recorded.append(post)
        self._watches[post.namespace] = watch
        return {"history_watch": watch.run}

    @property
    def works(self) -> dict[str, Work]:
        """Keeps the processes running that are needed."""
        works: dict[str, Work] = {}
        if self._estimated:
            module = "fairlead.api.estimator_process"
            works["estimates"] = SideProcess("estimator", module, self._estimator_orders).run
        if self._recorded:
            module = "fairlead.api.recorder_process"
            works["history"] = SideProcess("recorder", module, self._recorder_orders, self._hear).run
        return works

    def _estimator_orders(self) -> list[EstimatorOrder]:
        return [
            EstimatorOrder(*post.where, post.caretaker.name)
            for post in self._estimated
            if post.caretaker.is_elected
        ]

    def _recorder_orders(self) -> list[RecorderOrder]:
        return [
            RecorderOrder(
                *post.where,
                post.caretaker.name,
                post.history.url or "",
                post.history.keep_days,
                post.history.max_bytes,
                post.store.settings.is_ledger,
            )
            for post in self._recorded
            if post.caretaker.is_elected
        ]

    def _hear(self, message: tuple[str, str]) -> None:
        """What is wrong with the recording of a namespace; "": nothing any more."""
        namespace, problem = message
        self._watches[namespace].problem = problem
