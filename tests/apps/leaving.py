"""An app that leaves while it is loaded, as a script without `if __name__ == "__main__":` does."""

import sys

from fairlead import Fairlead

fl = Fairlead()
sys.exit(0)
