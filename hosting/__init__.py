"""Many sessions in one process, opened by id (semantics 16)."""

from ..core.ports.commands import CancelTurn, CloseHosted, SessionCommands, SteerTurn
from .host_statistics import HostStatistics
from .session_host import SessionHost

__all__ = ["CancelTurn", "CloseHosted", "HostStatistics", "SessionCommands", "SessionHost", "SteerTurn"]
