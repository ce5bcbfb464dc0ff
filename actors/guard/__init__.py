"""The guard, which admits one session at a time, and the supervisor around all actors (semantics 2, 6.2, 6.3)."""
