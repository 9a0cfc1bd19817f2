"""The priority service: which plan a user has, and its priority. A real one has a database."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLANS = {"sam": "studio", "pia": "pro", "fred": "free"}
PRIORITIES = {"studio": "high", "pro": "medium", "free": "medium"}


class Plans(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        user = self.path.split("/")[2]  # /users/{user_id}/priority
        plan = PLANS.get(user, "free")
        body = json.dumps({"priority": PRIORITIES[plan], "plan": plan}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", 8100), Plans).serve_forever()
