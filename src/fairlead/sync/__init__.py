"""The blocking API, for scripts, Flask, Django and notebooks: `from fairlead.sync import Fairlead`."""

from fairlead.sync.app import Fairlead
from fairlead.sync.function import TaskFunction
from fairlead.sync.handle import JobHandle, TaskHandle
from fairlead.sync.slots import SlotStore

__all__ = ["Fairlead", "JobHandle", "SlotStore", "TaskFunction", "TaskHandle"]
