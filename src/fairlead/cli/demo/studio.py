"""The app of the demo: a studio for posters and films. Its handlers only wait, as if for a model.

`pace` shortens all work: 1 is the speed at which people can watch it.
"""

import asyncio
import random

from fairlead.app.app import Fairlead
from fairlead.errors import PermanentError
from fairlead.worker.context import Context

GPU = ("gpu",)

fl = Fairlead()
fl.limit("prompt_enhancer", 3)
fl.limit("image_gen", 1)
fl.limit("gpu_a100", 2)
fl.limit("openai", rate="40/min", burst=10)
fl.limit("render_farm", 24)
fl.limit("tts_voice", 2)
fl.limit("postgres", 2)
fl.limit("stripe", rate="25/s", burst=5)


class OutOfMemory(RuntimeError):
    """The model has no room for a picture of that size, until others are done."""


@fl.task(limits={"prompt_enhancer": 1})
async def enhance(ctx: Context, topic: str, pace: float = 1) -> dict[str, str]:
    await _work(ctx, 5 * pace, "reads the topic", "writes a prompt")
    return {"prompt": f"{topic}, in soft evening light, wide angle"}


@fl.task(limits={"image_gen": 1}, required_capabilities=GPU, max_retries=3)
async def draw(ctx: Context, prompt: str = "a harbour", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 5 * pace, "loads the model", "draws")
    _allocate(random.choice((8, 12, 16)))
    await _work(ctx, 3 * pace, "removes noise")
    return {"image": f"{abs(hash(prompt)) % 10_000:04}.png"}


def _allocate(gigabytes: int) -> None:
    free = random.gauss(24, 5)
    if gigabytes > free:
        raise OutOfMemory(f"{gigabytes} GiB are needed, and {free:.1f} of 24 are free")


@fl.task(limits={"gpu_a100": 1}, required_capabilities=GPU)
async def upscale(ctx: Context, image: str = "0000.png", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 7 * pace, *(f"tile {n} of 4" for n in range(1, 5)))
    return {"poster": image.replace(".png", "-4k.png")}


@fl.task(limits={"stripe": 1}, max_retries=1)
async def publish(ctx: Context, poster: str = "", film: str = "", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 1 * pace, "uploads")
    if random.random() < 0.04:
        raise PermanentError("the shop refuses it: its title is taken")
    return {"address": _upload(poster or film)}


def _upload(file: str) -> str:
    if not file:
        raise FileNotFoundError("there is neither a poster nor a film to upload")
    return f"https://studio.example/{file}"


@fl.task(limits={"prompt_enhancer": 1})
async def script(ctx: Context, topic: str, pace: float = 1) -> dict[str, str]:
    for line in ("Fade in.", f"We see {topic}.", "A ship leaves.", "Fade out."):
        await _work(ctx, 2 * pace, "writes")
        await ctx.emit(line)
    return {"text": f"A film about {topic}"}


@fl.task(limits={"tts_voice": 1})
async def voice(ctx: Context, text: str = "", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 8 * pace, "speaks")
    return {"sound": "voice.ogg"}


@fl.task(limits={"render_farm": 8})
async def animate(ctx: Context, text: str = "", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 18 * pace, *(f"scene {n} of 6" for n in range(1, 7)))
    return {"film": "film.mp4"}


@fl.task(limits={"render_farm": 1})
async def thumbnail(ctx: Context, pace: float = 1) -> None:
    await _work(ctx, 4 * pace, "renders")


@fl.task(limits={"gpu_a100": 1}, required_capabilities=GPU)
async def train(ctx: Context, style: str = "ink", pace: float = 1) -> dict[str, str]:
    await _work(ctx, 30 * pace, *(f"epoch {n} of 10" for n in range(1, 11)))
    return {"model": f"{style}.safetensors"}


@fl.task(limits={"openai": 1})
async def caption(ctx: Context, image: str = "0000.png", pace: float = 1) -> str:
    await _work(ctx, 2 * pace, "looks at it")
    return f"{image}: a harbour at night"


@fl.cron("* * * * *", limits={"postgres": 1}, priority="low")
async def report(ctx: Context) -> str:
    await _work(ctx, 6, "counts", "writes")
    return "what the studio made in the last minute"


@fl.cron("30 2 * * *", timezone="Europe/Berlin", limits={"postgres": 2}, priority="low")
async def tidy(ctx: Context) -> None:
    await _work(ctx, 20, "deletes old drafts")


fl.pipeline("poster", [enhance, draw, upscale, publish])
fl.pipeline("film", [script, [voice, animate], publish])


async def _work(ctx: Context, seconds: float, *stages: str) -> None:
    """About that long, and never the same."""
    each = seconds * random.lognormvariate(0, 0.25) / len(stages)
    for done, stage in enumerate(stages):
        ctx.progress(done / len(stages), stage)
        await asyncio.sleep(each)
