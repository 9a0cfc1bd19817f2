"""`fairlead key`: who may use the gateway, and for what."""

from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import asdict

from fairlead.cli.audit import note
from fairlead.cli.limit import read_rate
from fairlead.cli.listing import LIST, ListOptions, View, show
from fairlead.cli.moments import read_duration
from fairlead.cli.options import DEFAULTS, Options, open_store
from fairlead.cli.output import Output, print_answer, print_json, say
from fairlead.cli.table import Columns, table_of
from fairlead.model.key import NewKey
from fairlead.settings import Rate
from fairlead.shapes.key import KeyAnswer
from fairlead.store.access.api_keys import id_of

app = App(name="key", help="Create, list, rotate and revoke API keys.")

COLUMNS: Columns = {
    "key": "id",
    "name": "name",
    "state": "state",
    "scopes": lambda key: ",".join(key["scopes"]),
    "tenant": "tenant",
    "rate": "rate",
    "at most": "max_priority",
    "created": "created_at",
    "expires": lambda key: key["expires_at"] or "never",
    "last used": lambda key: key["last_used_at"] or "never",
    "replaces": "replaces",
}
LEAST_USED = ("replaces", "created", "at most", "rate", "tenant", "last used", "expires", "scopes")

KeyId = Annotated[str, Parameter(help="Id, as `key list` shows it, or the whole key.")]


@app.command
async def create(
    *,
    name: Annotated[str, Parameter(help="The owner of the key: a person or a program.")],
    scope: Annotated[
        tuple[str, ...],
        Parameter(help="What it may do: submit, read, cancel, worker, admin, metrics.", negative=()),
    ],
    tenant: Annotated[str | None, Parameter(help="Only for the tasks of this tenant; else for all.")] = None,
    expires: Annotated[str, Parameter(help="How long it is valid: 90d, 12h, 30min, or never.")] = "never",
    rate: Annotated[
        str | None, Parameter(help="Tasks it may submit: 100/s, 1000/h; else as the server says.")
    ] = None,
    max_priority: Annotated[
        str | None, Parameter(help="Best priority of what it submits: high, medium, low; else any.")
    ] = None,
    options: Options = DEFAULTS,
) -> None:
    """Create a key and print it once: the store keeps only its digest."""
    scopes = [one.strip() for part in scope for one in part.split(",")]
    seconds = None if expires == "never" else read_duration("--expires", expires)
    allowed = None if rate is None else read_rate(rate, Rate.of_submits)
    async with open_store(options, join=True) as store:
        new = await store.api_keys.create(
            name, scopes, tenant=tenant, expires_seconds=seconds, rate=allowed, max_priority=max_priority
        )
        # before anything else can fail: the key exists now, and nobody else knows it
        _show(new, options.output)
        await note(store, "create_key", new.api_key.id, None, KeyAnswer.from_value(new.api_key))


@app.command(name="list")
async def list_keys(*, options: ListOptions = LIST) -> None:
    """List the keys, without their secrets."""
    async with open_store(options) as store:

        async def read() -> View:
            keys = [KeyAnswer.from_value(key) for key in await store.api_keys.all()]
            return View({"keys": keys}, [table_of(keys, COLUMNS, LEAST_USED)])

        await show(options, read)


@app.command
async def revoke(key_id: KeyId, /, *, options: Options = DEFAULTS) -> None:
    """Revoke a key, at once and for good."""
    async with open_store(options) as store:
        before = await store.api_keys.get(id_of(key_id))
        await store.api_keys.revoke(before.id)
        await note(store, "revoke_key", before.id, KeyAnswer.from_value(before), {"state": "revoked"})
    print_answer(options.output, {"revoked": before.id}, f"{before.id} revoked")


@app.command
async def rotate(
    key_id: KeyId,
    /,
    *,
    overlap: Annotated[str, Parameter(help="How long the old key remains valid: 1d, 1h, 0s.")] = "1d",
    options: Options = DEFAULTS,
) -> None:
    """Create a key with the same rights and print it; the old one expires after the overlap."""
    seconds = read_duration("--overlap", overlap)
    async with open_store(options) as store:
        new = await store.api_keys.rotate(id_of(key_id), seconds)
        _show(new, options.output)
        await note(store, "rotate_key", id_of(key_id), None, KeyAnswer.from_value(new.api_key))


def _show(new: NewKey, output: Output) -> None:
    if output == "json":
        print_json({"key": new.key_text, **asdict(KeyAnswer.from_value(new.api_key))})
        return
    print(new.key_text, flush=True)  # alone on stdout: KEY=$(fairlead key create ...) is the key
    say("Keep it: it is not shown again.")
