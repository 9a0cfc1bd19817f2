"""Fairlead beside other queues: the same jobs, one server, one run, each in its fast configuration."""
