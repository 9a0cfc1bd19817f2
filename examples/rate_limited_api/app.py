"""Calls to an API that allows two requests a second, by any number of workers."""

import time
from typing import TypedDict

from fairlead import Fairlead

fl = Fairlead()
fl.limit("weather_api", rate="2/s", burst=1)  # for all processes and machines together


class Call(TypedDict):
    city: str
    called_at: float


@fl.task(limits={"weather_api": 1})
async def look_up(city: str) -> Call:
    return {"city": city, "called_at": time.time()}  # here you would call the API
