"""A flaky service: it refuses every first attempt with a 503, and all while there is a file `down`."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Narrator(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request["meta"]["attempt"] == 1 or Path("down").exists():
            self.answer(503, {"detail": "try again later"})
        else:
            job_id = request["meta"]["job_id"]
            self.answer(200, {"data": {"audio": f"https://audio.example/{job_id}.ogg"}})

    def answer(self, status: int, body: dict[str, object]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)


ThreadingHTTPServer(("127.0.0.1", 9000), Narrator).serve_forever()
