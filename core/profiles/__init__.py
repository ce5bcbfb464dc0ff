"""What an agent can be: profiles, modes, discovery (semantics 13)."""
