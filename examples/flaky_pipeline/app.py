"""A pipeline of Python functions with an HTTP service between them."""

from fairlead import Fairlead

fl = Fairlead()


@fl.task
async def write(topic: str) -> dict[str, str]:
    return {"text": f"A story about {topic}."}


@fl.task
async def publish(text: str, audio: str) -> str:
    return f"{text} Listen to it: {audio}"


fl.pipeline("story", [write, "narrator", publish])  # the service is in fairlead.toml
