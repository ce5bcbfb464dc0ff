"""Test any Trio program: cancel it everywhere, break every port, run it in every order, replay a failure from one line.

Usable without the rest of the package: nothing in the engine knows of agents (semantics 15).
"""

from .attempt import Attempt, Chaos
from .crashes import Crashed, DurableLog
from .decorator import explored, swept
from .exploration import explore
from .faults import Fault, FaultPlan, InjectedDeath, InjectedFault
from .hooks import RealIORefused, TrioMoved, check_trio
from .replays import replay
from .report import Coverage, Failure, Report
from .simulation import Simulation
from .sweeps import sweep
from .tokens import BadToken

__all__ = [
    "Attempt",
    "BadToken",
    "Chaos",
    "Coverage",
    "Crashed",
    "DurableLog",
    "Failure",
    "Fault",
    "FaultPlan",
    "InjectedDeath",
    "InjectedFault",
    "RealIORefused",
    "Report",
    "Simulation",
    "TrioMoved",
    "check_trio",
    "explore",
    "explored",
    "replay",
    "sweep",
    "swept",
]
