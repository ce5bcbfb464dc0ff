"""Numbers about a host and its sessions (semantics 16)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..actors.guard.statistics import AgentStatistics


@attrs.frozen
class HostStatistics:
    """A snapshot of a `SessionHost`."""

    open: int
    """Sessions that have an agent here: opening, in use, idle or closing."""
    in_use: int
    """Of these, sessions that somebody holds open."""
    idle: int
    """Of these, sessions that nobody holds, with no turn and nothing unsaved: they may be closed for others."""
    waiting: int
    """Tasks that wait for room to open a session."""
    opened: int
    """Sessions that were opened or resumed since the host began."""
    closed: int
    """Sessions that ended since then, for whatever reason."""
    draining: bool
    """Whether the host refuses to open more."""
    running_turns: int
    """Turns that run now."""
    running_tools: int
    """Tool calls that run now."""
    stuck_tools: int
    """Tools that did not stop when they had to."""
    unsaved_events: int
    """Events that the session storage has not acknowledged."""
    storage_failures: int
    """Writes that failed, of the sessions that are open now."""
    sessions: Mapping[str, AgentStatistics]
    """The numbers of each open session's agent, by the session's id."""
