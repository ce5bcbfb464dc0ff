"""Many sessions in one process, opened by id (semantics 16)."""

from .host_statistics import HostStatistics
from .session_host import SessionHost

__all__ = ["HostStatistics", "SessionHost"]
