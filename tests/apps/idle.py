"""An app without tasks, and something that is no app."""

from fairlead import Fairlead

fl = Fairlead()
number = 5
