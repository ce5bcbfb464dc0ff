"""Test any Trio program: cancel it everywhere, break every port, run it in every order, replay a failure from one line.

Usable without the rest of the package: nothing in the engine knows of agents (semantics 15).
"""

from ..core.normalise import normalise
from .attempt import Attempt, Chaos
from .conformance_memory import check_memory_storage
from .conformance_provider import check_model_provider
from .conformance_storage import check_session_storage
from .crashes import Crashed, DurableLog
from .decorator import explored, swept
from .exploration import explore
from .faults import Fault, FaultPlan, InjectedDeath, InjectedFault
from .hooks import RealIORefused, TrioMoved
from .html import write_html
from .invariants import AgentInvariants
from .loading import examine, load_scenario
from .replays import replay
from .report import Coverage, Failure, Report
from .scripted import ScriptedProvider, StrictProvider, call, calls, say
from .selftest import self_test
from .simulation import Simulation
from .stores import InMemoryMemoryStorage, InMemorySessionStorage
from .sweeps import sweep
from .tokens import BadToken

__all__ = [
    "AgentInvariants",
    "Attempt",
    "BadToken",
    "Chaos",
    "Coverage",
    "Crashed",
    "DurableLog",
    "Failure",
    "Fault",
    "FaultPlan",
    "InMemoryMemoryStorage",
    "InMemorySessionStorage",
    "InjectedDeath",
    "InjectedFault",
    "RealIORefused",
    "Report",
    "ScriptedProvider",
    "Simulation",
    "StrictProvider",
    "TrioMoved",
    "call",
    "calls",
    "check_memory_storage",
    "check_model_provider",
    "check_session_storage",
    "examine",
    "explore",
    "explored",
    "load_scenario",
    "normalise",
    "replay",
    "say",
    "self_test",
    "sweep",
    "swept",
    "write_html",
]
