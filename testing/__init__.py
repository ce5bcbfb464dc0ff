"""The test kit: scripted models, faults, schedules, conformance (semantics 15)."""

from .scripted import ScriptedProvider, StrictProvider, call, calls, say

__all__ = ["ScriptedProvider", "StrictProvider", "call", "calls", "say"]
