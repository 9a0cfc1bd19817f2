"""The example of the contract: a checker accepts it as it is."""

from fairlead import Context, Fairlead, PermanentError, RetriableError

fl = Fairlead()
fl.limit("image_gen", 1)


@fl.task(limits={"image_gen": 1}, timeout=360, max_concurrent=None, run_in="loop")
async def generate_image(prompt: str, ctx: Context) -> dict[str, str]:
    if not prompt:
        raise PermanentError("there is nothing to draw")
    if len(prompt) > 100:
        raise RetriableError("too busy", retry_after=3)
    return {"picture": prompt}


@fl.task("call_api", max_concurrent=10)
def call_api(url: str) -> dict[str, str]:
    return {"url": url}


fl.pipeline("full_pipeline", ["prompt_enhancer", ["fast_chat_llm", call_api], generate_image])


async def main() -> None:
    async with fl:
        task = await generate_image.submit(prompt="a robot", priority="high", user_id="u1")
        print(task.queue_position, task.estimate)
        print((await task.result(timeout=600))["picture"])
        async with fl.acquire("image_gen", wait=30) as lease:
            print(lease.fence)
        context = await fl.run("full_pipeline", {"url": "x"}, priority="low", timeout=5)
        print(context["step_3_generate_image"]["data"])
