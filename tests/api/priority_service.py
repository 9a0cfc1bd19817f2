"""A priority service as gateways ask it, in a thread: which priority users have, and what else it answers."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PRIORITIES: dict[str, str] = {}
MORE: dict[str, dict[str, Any]] = {}  # of the answer for a user


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        user = self.path.split("/")[2]
        self.send_response(200 if user in PRIORITIES else 404)
        self.end_headers()
        answer = {"priority": PRIORITIES.get(user), **MORE.get(user, {})}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # many ask at once


@contextlib.contextmanager
def priority_service(**settings: str) -> Iterator[dict[str, str]]:
    """The environment of a gateway that asks it, with these settings of `priority_service`."""
    with Server(("127.0.0.1", 0), Service) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        given = {"timeout_seconds": "20"} | settings
        try:
            yield {
                "PRIORITY_API_URL": f"http://127.0.0.1:{service.server_port}",
                **{f"FAIRLEAD_PRIORITY_SERVICE__{name.upper()}": value for name, value in given.items()},
            }
        finally:
            service.shutdown()
            thread.join()


@contextlib.contextmanager
def known_users() -> Iterator[None]:
    PRIORITIES.update(ann="high", bob="low")
    yield
    PRIORITIES.clear()
    MORE.clear()
