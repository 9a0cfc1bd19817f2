"""One AI endpoint: as slow and as narrow as a real one, and it refuses what is too much for it.

python services.py image_gen --port 9002
"""

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


@dataclass(frozen=True)
class Kind:
    limit: int  # calls at once
    seconds: tuple[float, float]  # that a call takes
    answer: Callable[[dict[str, Any]], dict[str, Any]]  # from what is known of the job so far


KINDS = {
    "prompt_enhancer": Kind(
        5, (60, 120), lambda known: {"enhanced_prompt": f"{known['prompt']}, in fine detail, golden light"}
    ),
    "fast_chat_llm": Kind(
        4,
        (120, 180),
        lambda known: {"generated_text": f"Imagine this: {known.get('enhanced_prompt', known['prompt'])}."},
    ),
    "image_gen": Kind(
        1,
        (300, 360),
        lambda known: {"image_url": f"https://images.example/{quote(known['prompt'])}.png"},
    ),
    "model_3d_gen": Kind(
        1,
        (360, 420),
        lambda known: {"model_url": known["image_url"].replace("images", "models").replace(".png", ".glb")},
    ),
}


class Endpoint:
    """`now` and `most` are counted here, by the endpoint itself: whoever calls it cannot get them wrong."""

    def __init__(self, kind: Kind, faster: float) -> None:
        self._kind = kind
        self._faster = faster
        self.now = self.most = self.calls = self.refused = 0

    async def execute(self, request: Request) -> JSONResponse:
        payload = (await request.json())["payload"]
        if self.now >= self._kind.limit:
            self.refused += 1
            return JSONResponse({"detail": "out of memory"}, 503, {"Retry-After": "1"})
        self.now += 1
        self.most = max(self.most, self.now)
        self.calls += 1
        began = time.monotonic()
        try:
            await asyncio.sleep(random.uniform(*self._kind.seconds) / self._faster)
            data = self._kind.answer(known_of(payload))
        except KeyError as missing:
            return JSONResponse({"detail": f"no {missing.args[0]} was given"}, 422)
        finally:
            self.now -= 1
        took = round((time.monotonic() - began) * 1000)
        return JSONResponse({"data": data, "metrics": {"execution_time_ms": took}})

    async def stats(self, _: Request) -> JSONResponse:
        return JSONResponse(
            {"now": self.now, "most": self.most, "calls": self.calls, "refused": self.refused}
        )


def known_of(payload: dict[str, Any]) -> dict[str, Any]:
    """What the job was asked with, and what the steps before this one have answered."""
    known = dict(payload["params"])
    for step in payload["context"].values():
        if isinstance(step, dict) and isinstance(step.get("data"), dict):
            known |= step["data"]
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument(
        "--faster", type=float, default=60, help="than in real life (60: minutes are seconds)"
    )
    given = parser.parse_args()
    endpoint = Endpoint(KINDS[given.kind], given.faster)
    app = Starlette(
        routes=[
            Route("/v1/execute", endpoint.execute, methods=["POST"]),
            Route("/stats", endpoint.stats),
        ]
    )
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
