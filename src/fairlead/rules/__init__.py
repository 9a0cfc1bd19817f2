"""Which task starts next, as pure Python: no store, no clock, no randomness.

Start with `choice.py`, the rule itself. `limits`, `holds`, `fairness`, `ageing` and `retry` are its parts;
`twin.py` is a whole scheduler made of them. The same rule in Lua decides; this one is the specification.
"""
