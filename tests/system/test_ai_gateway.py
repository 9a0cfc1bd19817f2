"""The example, with real programs: no service has too much, all jobs complete, better priorities go first."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from tests.compose_stack import EXAMPLE, make_compose
from tests.examples.test_readmes import copy_of
from tests.servers import Server
from tests.sessions import played
from tests.system.ai_gateway import play, replay
from tests.wheel import Wheel


@pytest.mark.timeout(180)
async def test_a_crowd_of_all_plans_is_served_in_order(
    server: Server, open_store: Callable[..., Store], tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    compose = make_compose(server.url, tmp_path)
    settings = load_settings(EXAMPLE / "fairlead.toml", compose.environment)
    store = open_store(settings.engine.namespace, settings=settings)
    figures = await play(compose, store, seed, jobs=40, faster=1500)
    print(figures)
    assert figures["starts_ahead_of_worse_priorities"] > 0, "nobody competed: this test shows nothing"


@pytest.mark.timeout(180)
def test_the_commands_of_the_readme_can_be_pasted_at_once(wheel: Wheel, tmp_path: Path) -> None:
    """`submit.py` starts together with the server, before anything listens."""
    folder, env = copy_of("ai_gateway", tmp_path)
    (commands,) = re.findall(r"^```sh\n(cd .*?)```", (folder / "README.md").read_text(), re.M | re.S)
    _, *others = commands.replace(" &\n", " --faster 3000 &\n", 4).replace("&\n", "2>> log &\n").splitlines()
    assert others[-1] == "python submit.py"
    others[-1] += " --jobs 5; echo code $?"
    *_, printed = played(others, tmp_path, wheel.path("uvicorn"), folder=folder, env=env)
    assert printed.endswith("code 0\n"), printed + (folder / "log").read_text()


def event(task: str, act: str, at: int, **detail: str | int) -> dict[str, Any]:
    before, after = {"submit": ("", "queued"), "claim": ("queued", "executing")}[act]
    return {"task": task, "act": act, "from": before, "to": after, "at": at, "detail": detail}


def test_a_start_ahead_of_a_better_priority_would_be_seen() -> None:
    low = event("low", "submit", 1, type="service:image_gen", priority=2)
    high = event("high", "submit", 2, type="service:image_gen", priority=0)
    elsewhere = event("other", "submit", 2, type="service:fast_chat_llm", priority=0)
    starts = [event("high", "claim", 3, place="0n"), event("low", "claim", 5, place="2n")]
    queue = replay([low, high, elsewhere, *starts])["image_gen"]
    assert (queue.competed, queue.waits) == (1, [(1, 5)])
    with pytest.raises(AssertionError, match=r"low started as 2n though \['high'\] waited"):
        replay([low, high, event("low", "claim", 3, place="2n")])
