"""An app without tasks, and an object that is not an app."""

from fairlead import Fairlead

fl = Fairlead()
number = 5
