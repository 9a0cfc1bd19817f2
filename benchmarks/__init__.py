"""Fairlead measured: fixed scenarios, each with the machine and the settings beside its figures."""
