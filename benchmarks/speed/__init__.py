"""The first half: how fast. One program a runtime, one process a measurement."""
