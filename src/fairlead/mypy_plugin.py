"""For mypy: `draw.submit(...)` takes what `draw` takes, without its context, and the options of a task.

No type hint can say that: a signature can be forwarded, but not with keywords added. In `pyproject.toml`:

    [tool.mypy]
    plugins = ["fairlead.mypy_plugin"]
"""

from collections.abc import Callable

from mypy.nodes import ARG_NAMED_OPT, ARG_STAR, ARG_STAR2
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    Parameters,
    Type,
    TypedDictType,
    UnionType,
    get_proper_type,
)

METHODS = ("fairlead.app.function.TaskFunction.submit", "fairlead.app.function.TaskFunction.new")
CONTEXT = "fairlead.worker.context.Context"
OPTIONS = "fairlead.app.function.Options"


class FairleadPlugin(Plugin):
    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        return self._signature if fullname in METHODS else None

    def _signature(self, context: MethodSigContext) -> FunctionLike:
        function, signature = get_proper_type(context.type), context.default_signature
        if not isinstance(function, Instance) or not isinstance(signature, CallableType):
            return signature
        parameters = get_proper_type(function.args[0])
        options = self._options()
        if not isinstance(parameters, Parameters) or options is None:
            return signature
        own = list(zip(parameters.arg_kinds, parameters.arg_names, parameters.arg_types, strict=True))
        kept = [one for one in own if not _is_context(one[2]) and one[0] not in (ARG_STAR, ARG_STAR2)]
        rest = [one for one in own if one[0] is ARG_STAR2]
        taken = {name for _, name, _ in kept}
        added = [(ARG_NAMED_OPT, name, type_) for name, type_ in options.items.items() if name not in taken]
        kinds, names, types = zip(*kept, *added, *rest, strict=True)
        return signature.copy_modified(arg_kinds=list(kinds), arg_names=list(names), arg_types=list(types))

    def _options(self) -> TypedDictType | None:
        symbol = self.lookup_fully_qualified(OPTIONS)
        return getattr(symbol and symbol.node, "typeddict_type", None)


def _is_context(type_: Type) -> bool:
    proper = get_proper_type(type_)
    if isinstance(proper, UnionType):
        return any(_is_context(item) for item in proper.items)
    return isinstance(proper, Instance) and proper.type.fullname == CONTEXT


def plugin(version: str) -> type[Plugin]:
    return FairleadPlugin
