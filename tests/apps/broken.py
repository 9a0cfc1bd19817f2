"""An app that cannot be loaded."""

raise RuntimeError("the licence has run out")
