"""The same as `fairlead`, for a Python that is not on the path: `python -m fairlead.cli`."""

from fairlead.cli import main

main()
