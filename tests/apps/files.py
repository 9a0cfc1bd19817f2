"""Handlers that read an uploaded file and make another; tests run them in every place."""

from fairlead import BlobRef, Context, Fairlead

fl = Fairlead()


@fl.task(run_in="process")
def shout(source: BlobRef, ctx: Context) -> dict[str, BlobRef]:
    with ctx.open(source) as file:
        content = file.read()
    return {"loud": ctx.blob(content.upper(), name="loud.txt").wait()}


@fl.task(run_in="process")
async def shout_async(source: BlobRef, ctx: Context) -> dict[str, BlobRef]:
    async with ctx.open(source) as file:
        content = file.read()
    return {"loud": await ctx.blob(content.upper(), name="loud.txt")}


@fl.task(run_in="process")
async def blocks(source: BlobRef, ctx: Context) -> None:
    with ctx.open(source):
        pass


@fl.task(run_in="process")
def opens(ctx: Context, name: str) -> None:
    with ctx.open({"blob": name, "size": 1}):
        pass


@fl.task(run_in="process")
def uploads(ctx: Context, path: str) -> BlobRef:
    return ctx.blob(path).wait()
