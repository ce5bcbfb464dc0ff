"""The test kit: scripted models, faults, schedules, conformance (semantics 15)."""

from .scripted import ScriptedProvider, StrictProvider, call, calls, say
from .stores import InMemoryMemoryStorage, InMemorySessionStorage

__all__ = [
    "InMemoryMemoryStorage",
    "InMemorySessionStorage",
    "ScriptedProvider",
    "StrictProvider",
    "call",
    "calls",
    "say",
]
