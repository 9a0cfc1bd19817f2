"""The policy of a namespace: numbers that all its processes decide by."""

from dataclasses import dataclass

Number = bool | int | float | str
NAMESPACE = "namespace"  # the source of a number that this process would have set otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """A number in force, beside the one that the settings of this process say."""

    setting: str
    value: Number
    source: str  # what set it: a line of the file, a variable, ... if the settings agree, else `namespace`
    local_value: Number
    local_source: str

    @property
    def differs(self) -> bool:
        return self.value != self.local_value
