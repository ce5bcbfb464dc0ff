"""What a host holds: agent, session, running turn (semantics 1)."""
