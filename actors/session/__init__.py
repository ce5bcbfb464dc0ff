"""The session actor, its mailbox, and how a session is opened (semantics 6.3, 7)."""
