"""A call of a handler as a task: its parameters, and options beside them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

from fairlead.app.options import OPTIONS, Options, instead, new_task
from fairlead.model.task import NewTask
from fairlead.settings import PriorityName
from fairlead.worker.handler import Handler

S = ParamSpec("S")
T = TypeVar("T", covariant=True)


class TaskCall(Generic[S, T]):
    """`draw.submit` and `draw.new`: they accept the parameters of the handler and the options of a task.

    Options and parameters are distinguished by name. If a parameter has the name of an option, the keyword
    sets the parameter, and `draw.options(...)` sets the option.

    Type checkers check the parameters of a call without options (the first overload). They cannot add
    keywords to the parameters of a function, so each of the other overloads accepts a call with one option,
    whatever else is given.
    """

    def __init__(
        self, name: str, handler: Handler, options: Mapping[str, Any], send: Callable[[NewTask], T]
    ) -> None:
        self._name = name
        self._handler = handler
        self._options = options
        self._send = send

    @overload
    def __call__(self, *args: S.args, **kwargs: S.kwargs) -> T: ...
    @overload
    def __call__(self, *args: Any, priority: PriorityName | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, user_id: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, tenant: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, concurrency_group: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, concurrency_limit: int | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, duration: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, timeout_seconds: float | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, max_wait_seconds: float | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, deadline_seconds: float | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, delay_seconds: float | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, size_hint: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, trace_id: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, required_capabilities: Sequence[str] | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, limits: Mapping[str, int] | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, max_retries: int | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, run_at: datetime | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, idempotency_key: str | None, **others: Any) -> T: ...
    @overload
    def __call__(self, *args: Any, task_id: str | None, **others: Any) -> T: ...
    def __call__(self, *args: Any, **given: Any) -> T:
        parameters = self._handler.parameters
        own = parameters.names
        chosen = {name: given.pop(name) for name in list(given) if name in OPTIONS and name not in own}
        if parameters.taken is not None and (unknown := given.keys() - parameters.taken):
            name = min(unknown)
            hint = instead(name, parameters.taken | Options.__annotations__.keys())
            raise TypeError(f"{self._name}() has no parameter and no option {name!r}{hint}")
        bound = parameters.bound(args, given)
        return self._send(new_task(self._handler.task_type, bound, {**self._options, **chosen}))

    def __repr__(self) -> str:
        return f"<{self._name}{self.__signature__}>"

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the handler without its context, and the options."""
        own = self._handler.parameters.signature.parameters.values()
        names = {one.name for one in own}
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in get_type_hints(Options).items()
            if name not in names
        ]
        # the options precede `**rest`; sorting keeps the order within each kind
        return inspect.Signature(sorted([*own, *options], key=lambda one: one.kind))
