"""Imported last by the process from which warm ones are forked.

What it has imported stays for good: to look for garbage among that would copy all of it, in every process.
"""

import gc

gc.collect()
gc.freeze()
