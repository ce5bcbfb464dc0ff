"""Sweeps of existing test suites: what the pytest plugin does once it is asked to."""
