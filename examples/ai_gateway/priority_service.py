"""Who pays for what: the priority of a user, by the plan that the user is on."""

import argparse

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PRIORITIES = {"enterprise": "high", "pro": "medium", "free": "low"}


async def priority(request: Request) -> JSONResponse:
    """Users are named by their plan here, as in user_pro_17; a real service has a database."""
    plan = request.path_params["user_id"].removeprefix("user_").partition("_")[0]
    if plan not in PRIORITIES:
        return JSONResponse({"detail": "no such user"}, 404)
    return JSONResponse({"priority": PRIORITIES[plan], "plan": plan})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8100)
    given = parser.parse_args()
    app = Starlette(routes=[Route("/users/{user_id}/priority", priority)])
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
