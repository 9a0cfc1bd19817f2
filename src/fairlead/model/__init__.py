"""The nouns of Fairlead as values: no I/O, and nothing of how they are stored or sent."""
