"""Test any Trio program: cancel it everywhere, break every port, run it in every order, replay a failure from one line.

Usable without the rest of the package: nothing in the engine knows of agents (semantics 15).
"""

from ..core.history.repair import normalise
from .agents.conformance_claims import check_session_claims
from .agents.conformance_memory import check_memory_storage
from .agents.conformance_provider import check_model_provider
from .agents.conformance_storage import check_session_storage
from .agents.invariants import AgentInvariants
from .agents.scripted import ScriptedProvider, StrictProvider, call, calls, say
from .agents.stores import InMemoryClaimedStorage, InMemoryMemoryStorage, InMemorySessionStorage
from .campaigns.campaign import Interrupted
from .campaigns.decorator import explored, swept
from .campaigns.examination import examine
from .campaigns.exploration import explore
from .campaigns.hash_seeds import hash_seed_divergence
from .campaigns.replays import replay
from .campaigns.sweeps import sweep
from .campaigns.targets import load_scenario
from .engine.attempt import Attempt, Chaos
from .engine.crashes import Crashed, DurableLog
from .engine.faults import Fault, FaultPlan, InjectedDeath, InjectedFault
from .engine.selftest import self_test
from .engine.simulation import Simulation
from .process.trio_internals import RealIORefused, TrioMoved
from .report.findings import Coverage, Failure
from .report.html import write_html
from .report.report import Report
from .report.tokens import BadToken

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
    "InMemoryClaimedStorage",
    "InMemoryMemoryStorage",
    "InMemorySessionStorage",
    "InjectedDeath",
    "InjectedFault",
    "Interrupted",
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
    "check_session_claims",
    "check_session_storage",
    "examine",
    "explore",
    "explored",
    "hash_seed_divergence",
    "load_scenario",
    "normalise",
    "replay",
    "say",
    "self_test",
    "sweep",
    "swept",
    "write_html",
]
