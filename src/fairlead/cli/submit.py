"""`fairlead submit`: one task from the command line, and with --wait its result."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from fairlead.app.files import as_blob
from fairlead.app.handle import TaskHandle, result_of
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_answer, print_end, say, warn
from fairlead.cli.session import talk
from fairlead.cli.task import follow_task
from fairlead.errors import InvalidInput
from fairlead.model.states import WAITING
from fairlead.model.task import NewTask, Submitted
from fairlead.settings import PriorityName
from fairlead.settings.tiers import INTERACTIVE
from fairlead.shapes.estimate import shown_estimate
from fairlead.shapes.task import TaskAnswer
from fairlead.times import read_time

WORTH_SAYING = 1.0  # seconds of a wait
Repeated = Parameter(negative=(), show_default=False)


JsonObject = Annotated[
    str | None,
    Parameter(help="A JSON object; @FILE reads a file, - reads stdin.", allow_leading_hyphen=True),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubmitOptions:
    """What a task or a job is given, and how it is treated."""

    param: Annotated[
        tuple[str, ...],
        Repeated,
        Parameter(help="name=value of the input: JSON if it reads as JSON, else text; repeatable."),
    ] = ()
    priority: Annotated[
        PriorityName | None,
        Parameter(help="Priority; default: medium, or what the priority service returns."),
    ] = None
    user_id: Annotated[
        str | None, Parameter(help="The user it belongs to; capacity is shared fairly between users.")
    ] = None
    max_wait: Annotated[
        float | None, Parameter(help="Seconds that it, or a step of a job, waits to start before it fails.")
    ] = None
    idempotency_key: Annotated[
        str | None, Parameter(help="Repeated with the same key, it is accepted once: safe to retry.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TaskOptions(SubmitOptions):
    parameters: JsonObject = None
    file: Annotated[
        tuple[str, ...], Repeated, Parameter(help="name=PATH of a file for the parameter; repeatable.")
    ] = ()
    limit: Annotated[
        tuple[str, ...], Repeated, Parameter(help="name=units of a limit that it needs; repeatable.")
    ] = ()
    duration: Annotated[
        str | None,
        Parameter(help="The tier that bounds its run; interactive: talk to its handler; else it is elastic."),
    ] = None
    timeout: Annotated[float | None, Parameter(help="Maximum run time in seconds.")] = None
    deadline: Annotated[
        float | None,
        Parameter(help="Seconds within which it must start; refused at once if that is unlikely."),
    ] = None
    max_retries: Annotated[int | None, Parameter(help="Maximum number of retries.")] = None
    delay: Annotated[float | None, Parameter(help="Seconds before it may start.")] = None
    run_at: Annotated[str | None, Parameter(help="RFC 3339 time before which it does not start.")] = None
    require: Annotated[
        tuple[str, ...], Repeated, Parameter(help="A capability its worker must have; repeatable.")
    ] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        return [_split("--file", pair, "name=PATH") for pair in self.file]

    def task(self, task_type: str) -> NewTask:
        """Without its files."""
        return NewTask(
            task_type=task_type,
            parameters=given_parameters(self.parameters, self.param),
            priority=self.priority or "medium",
            priority_asked=self.priority is not None,
            user_id=self.user_id,
            limits=given_limits(self.limit),
            duration=self.duration,
            timeout_seconds=self.timeout,
            max_retries=self.max_retries,
            max_wait_seconds=self.max_wait,
            deadline_seconds=self.deadline,
            delay_seconds=self.delay,
            run_at=None if self.run_at is None else read_time("--run-at", self.run_at),
            idempotency_key=self.idempotency_key,
            required_capabilities=self.require,
        )


NOTHING_GIVEN = TaskOptions()


async def submit(
    task_type: str,
    /,
    *,
    wanted: TaskOptions = NOTHING_GIVEN,
    wait: Annotated[bool, Parameter(help="Show its progress, then print its result.", negative=())] = False,
    options: Options = DEFAULTS,
) -> None:
    """Submit a task. Exit code 1 when --wait sees it fail.

    With the duration interactive and on a terminal, lines are sent to its handler until it ends.
    """
    new, files = wanted.task(task_type), wanted.files
    talks = new.duration == INTERACTIVE and sys.stdin.isatty()
    async with open_backend(options, join=True) as backend:
        refs = {name: await as_blob(backend, path) for name, path in files}
        submitted = await backend.submit_one(replace(new, parameters={**new.parameters, **refs}))
        warn(submitted.warnings)
        if talks:
            if not await talk(handle := TaskHandle[Any](backend, submitted)):
                return
            task = await handle.get()
        elif wait:
            say(_sentence(submitted))
            task = await follow_task(backend, submitted.task_id, sys.stderr, "table")
    if wait or talks:
        print_end(options.output, TaskAnswer.from_value(task), partial(result_of, task))
    else:
        fields = ("task_id", "status", "queue_position", "repeated", "warnings")
        answer = {name: getattr(submitted, name) for name in fields}
        answer["estimate"] = shown_estimate(submitted.estimate)
        print_answer(options.output, answer, _sentence(submitted))


def _sentence(submitted: Submitted) -> str:
    position = submitted.queue_position
    where = "" if position is None else f", position {position}"
    if submitted.status in WAITING and submitted.estimate and submitted.estimate.p90_seconds >= WORTH_SAYING:
        where += f", starts in {submitted.estimate.words}"
    return f"{submitted.task_id} {submitted.status}{where}" + " (accepted before)" * submitted.repeated


def given_parameters(text: str | None, pairs: Sequence[str], option: str = "--parameters") -> dict[str, Any]:
    """The object of the option, overridden by each `--param`."""
    parameters: dict[str, Any] = {} if text is None else _object(option, _text_of(option, text))
    for pair in pairs:
        name, value = _split("--param", pair, "name=value")
        parameters[name] = _json_or_text(value)
    return parameters


def given_limits(pairs: Sequence[str]) -> dict[str, int]:
    limits = {}
    for pair in pairs:
        name, units = _split("--limit", pair, "name=units")
        if not re.fullmatch("[0-9]{1,10}", units):
            raise InvalidInput("--limit", f"{pair!r}: the units are a whole number, as in {name}=1")
        limits[name] = int(units)
    return limits


def _split(option: str, pair: str, form: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not name or not equals:
        raise InvalidInput(option, f"{pair!r} is not {form}")
    return name, value


def _text_of(option: str, given: str) -> str:
    try:
        if given == "-":
            return sys.stdin.read()
        return Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
    except OSError as problem:
        raise InvalidInput(option, f"cannot read {given[1:]}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(option, "is not text in UTF-8") from None


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        parsed = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as problem:
        raise InvalidInput(option, f'{problem}; write an object such as {{"name": 1}}') from None
    if not isinstance(parsed, dict):
        raise InvalidInput(option, 'is JSON, but not an object such as {"name": 1}')
    return parsed


def _json_or_text(value: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return value
