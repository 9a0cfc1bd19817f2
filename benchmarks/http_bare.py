"""The least a gateway could do: `python -m benchmarks.http_bare` parses a task, or many, and answers."""

import socket
from typing import Any

import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from fairlead.shapes.task import BatchBody, SubmitBody

ID = "01890000-0000-7000-8000-000000000000"
ANSWER = {
    "task_id": ID,
    "status": "queued",
    "priority": "high",
    "effective_priority": "high",
    "queue_position": 1,
    "estimate": None,
    "blocked_by": [],
}
one = msgspec.json.Decoder(SubmitBody)
many = msgspec.json.Decoder(BatchBody)
encode = msgspec.json.Encoder().encode


def answered(content: Any) -> Response:
    return Response(encode(content), 201, media_type="application/json")


async def submit(request: Request) -> Response:
    one.decode(await request.body())
    return answered(ANSWER)


async def submit_batch(request: Request) -> Response:
    tasks = [one.decode(task) for task in many.decode(await request.body()).tasks]
    return answered({"tasks": [{"task_id": ID, "status": "queued"} for _ in tasks]})


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        print(f"http://127.0.0.1:{opened.getsockname()[1]}", flush=True)
        routes = [
            Route("/api/v1/tasks", submit, methods=["POST"]),
            Route("/api/v1/tasks/batch", submit_batch, methods=["POST"]),
        ]
        config = uvicorn.Config(
            Router(routes),
            loop="uvloop",
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        uvicorn.Server(config).run(sockets=[opened])


if __name__ == "__main__":
    main()
