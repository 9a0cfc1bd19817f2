"""How long tasks will wait: what is learnt from the past, and the forecast made with it.

All of it are functions of values: `store/estimates.py` reads and keeps them, `upkeep/estimator.py` joins
the two. `foresight.py` plays the part of both in a replay of a trace.
"""
