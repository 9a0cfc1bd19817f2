"""The policy in force, and what set it."""

from fairlead.model.policy import PolicyValue
from fairlead.shapes.base import Answer, Shape


class SettingAnswer(Shape[PolicyValue]):
    """`source` is `namespace` where the settings of this server (`local_value`) say something else."""

    setting: str
    value: bool | int | float | str
    source: str
    local_value: bool | int | float | str
    local_source: str


class SettingsAnswer(Answer):
    settings: list[SettingAnswer]
